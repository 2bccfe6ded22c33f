"""The template of the page of a curated set; its style is that of the run's report."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{{ title }}</title>
<style>{{ style|safe }}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;font:12.5px/1.5 var(--mono)}
.stack{display:flex;height:10px;border-radius:3px;overflow:hidden;background:var(--plain-soft);
margin:8px 0 2px}
.stack i{display:block;background:#c9d6e2}.stack i.good{background:#7fbfa4}
.stack i.bad{background:#dd9c94}
.family{margin-bottom:12px}.family .bar{min-width:6em}
details i.cut{font-weight:400;font-style:normal;color:var(--muted);display:inline-block;
max-width:calc(100% - 1.5em);vertical-align:bottom;overflow:hidden;text-overflow:ellipsis;
white-space:nowrap}
summary.source b{font-weight:400;color:var(--muted);float:right}
details details.card{margin:0 18px 8px;border-color:var(--line)}
details details summary{font-weight:500;padding:8px 14px}
details details summary .pill{padding:1px 10px;font-weight:500;float:right}
td.key code{color:var(--muted)}
.sample{border-top:1px solid var(--line);padding:12px 18px}
.sample p{color:var(--muted);font-size:13px;margin:0 0 4px;overflow-wrap:anywhere}
.sample pre+pre{margin-top:8px;padding-top:8px;border-top:1px dashed var(--line)}
@media(max-width:760px){summary.source b{float:none;display:block}
details details.card{margin:0 10px 8px}
details details summary .pill{float:none;display:table;margin-top:4px}}
</style>
</head>
<body>
{% macro refusals(examples) %}
{% for one in examples %}<div class="sample"><p>{{ one.key }}</p>\
<pre>{{ one.detail or "no detail" }}</pre><p><code>row {{ one.row[:12] }}</code></p></div>\
{% endfor %}
{% endmacro %}
{% macro families(title, lines) %}
<div class="card scroll family"><table>
<thead><tr><th>{{ title }}</th><th class="n">problems</th><th class="n">share</th><th></th>\
<th class="n">demonstrations</th><th class="n">held out</th></tr></thead><tbody>
{% for line in lines %}
<tr><th>{{ line.name }}</th><td class="n">{{ line.counts[0] }}</td>\
<td class="n">{{ line.share }}</td>\
<td class="bar"><i class="good" style="width:{{ line.width }}%"></i></td>\
<td class="n">{{ line.counts[1] }}</td><td class="n">{{ line.counts[2] }}</td></tr>
{% endfor %}
</tbody></table></div>
{% endmacro %}
<header><div>
<p class="eyebrow">EachPrompt<span>curation</span>{% if note %}<span>{{ note }}</span>{% endif %}\
</p>
<h1>{{ headline }}</h1>
<dl class="tiles">
{% for label, value, note in tiles %}
<div><dt>{{ label }}</dt><dd>{{ value }}<small>{{ note }}</small></dd></div>
{% endfor %}
</dl>
</div></header>
<main>
<section><h2>From raw rows to the set</h2>
<p class="lede">Every item that was read is in the set, dropped (sound, but not wanted here) or \
quarantined (broken). Open a source for its reasons, and a reason for examples; \
<code>eachprompt trace --row</code> shows the raw row.</p>
{% if personal %}<p class="lede"><b>{{ personal }}</b></p>{% endif %}
<p class="key"><span><i style="background:#7fbfa4"></i>in the set</span>\
<span><i style="background:#c9d6e2"></i>dropped</span>\
<span><i style="background:#dd9c94"></i>quarantined</span></p>
{% for source in sources %}
<details class="card"><summary class="source">{{ source.name }} \
<span>{{ source.rows }} rows</span><b>{{ source.survivors }} of {{ source.items }} items kept, \
{{ source.left_out }} left out</b>
<div class="stack">{% for kind, width in source.bars %}\
<i class="{{ kind }}" style="width:{{ width }}%"></i>{% endfor %}</div></summary>
{% if source.decisions %}<div class="sample"><p>people decided about gold answers: \
{{ source.decisions }}</p></div>{% endif %}
{% if source.solve_rates %}<div class="sample"><p>solve rates of models: \
{{ source.solve_rates }} problems of the set before selection</p></div>{% endif %}
{% if source.personal %}<div class="sample"><p>items that tell something of a person: \
{{ source.personal }}</p></div>{% endif %}
{% if source.free %}<div class="sample"><p>reward that a text which does no task earns: \
{{ source.free }}</p></div>{% endif %}
{% for reason in source.reasons %}
<details class="card"><summary>{{ reason.label }} <span>{{ reason.count }}</span>\
<span class="pill {{ reason.kind }}">{{ reason.stage }}</span></summary>
{{ refusals(reason.examples) }}</details>
{% endfor %}
</details>
{% endfor %}
</section>
<section><h2>What the set is made of</h2>
<p class="lede">Problems to train on, demonstrations to imitate, and problems held out for \
evaluation.</p>
{{ families("domain", domains) }}
{{ families("language", languages) }}
{% if thinking.domain %}
<p class="lede">How much the demonstrations think. Short or empty think blocks teach the form of a \
chain of thought alone. Confirmed are answers that a verifier found right; others had none to \
check.</p>
{% for group, lines in thinking.items() if lines %}
<div class="card scroll"><table><thead><tr><th>source</th><th>{{ group }}</th>\
<th class="n">demonstrations</th><th class="n">confirmed by a verifier</th>\
<th class="n">think block empty or missing</th><th class="n">median words of thinking</th>\
<th class="n">words that one in ten exceeds</th></tr></thead><tbody>
{% for source, name, cells in lines %}<tr><th>{{ source }}</th><td>{{ name }}</td>\
{% for cell in cells %}<td class="n">{{ cell }}</td>{% endfor %}</tr>{% endfor %}
</tbody></table></div>
{% endfor %}
{% endif %}
{% for title, lines in subjects if lines %}
<div class="card scroll"><table><thead><tr><th>{{ title }}</th>\
<th class="n">problems</th><th class="n">share</th></tr></thead><tbody>
{% for name, count, share in lines %}<tr><th>{{ name }}</th><td class="n">{{ count }}</td>\
<td class="n">{{ share }}</td></tr>{% endfor %}
</tbody></table></div>
{% endfor %}
</section>
{% if charts %}
<section><h2>Lengths and difficulty</h2>
<p class="lede">Of what is trained on.</p>
<div class="grid two">
{% for chart in charts %}
<figure class="card"><figcaption><h3>{{ chart.title }}<b>{{ chart.numbers }}</b></h3>\
<p>{{ chart.note }}</p></figcaption>
{{ chart.svg|safe }}</figure>
{% endfor %}
</div>
{% if models %}
<p class="lede">Problems by how often a model solves them.</p>
<div class="card scroll"><table><thead><tr><th>model</th><th class="n">problems</th>\
<th class="n">mean pass rate</th>{% for band in bands %}<th class="n">{{ band }}</th>{% endfor %}\
</tr></thead><tbody>
{% for model, cells in models %}<tr><th>{{ model }}</th>\
{% for cell in cells %}<td class="n">{{ cell }}</td>{% endfor %}</tr>{% endfor %}
</tbody></table></div>
{% endif %}
</section>
{% endif %}
{% if clusters %}
<section><h2>Copies</h2>
<p class="lede">{{ clusters_note }}</p>
{% for cluster in clusters %}
<details class="card"><summary><i class="cut">{{ cluster.text or cluster.key }}</i> \
<span>{{ cluster.count }} {{ "copy" if cluster.count == "1" else "copies" }}\
{% if cluster.text %} of {{ cluster.key }}{% endif %}</span></summary>
{% if cluster.text %}<div class="sample"><p>the kept item</p><pre>{{ cluster.text }}</pre></div>\
{% endif %}
{{ refusals(cluster.members) }}</details>
{% endfor %}
</section>
{% endif %}
{% if leaks %}
<section><h2>Overlap with what is held out</h2>
<p class="lede">Items of each source that were dropped because they overlap with a held-out \
problem, by the source of that problem.</p>
<div class="card scroll"><table><thead><tr><th>dropped from</th>{% for suite in suites %}\
<th class="n">{{ suite }}</th>{% endfor %}</tr></thead><tbody>
{% for source, counts in leaks %}<tr><th>{{ source }}</th>{% for count in counts %}\
<td class="n">{{ count }}</td>{% endfor %}</tr>{% endfor %}
</tbody></table></div>
</section>
{% endif %}
{% if groups %}
<section><h2>Samples</h2>
<p class="lede">The first problems and demonstrations of every domain and language.</p>
{% for group in groups %}
<details class="card"><summary>{{ group.title }} <span>{{ group.note }}</span></summary>
{% for sample in group.samples %}
<div class="sample"><p>{{ sample.key }}</p><pre>{{ sample.prompt }}</pre>\
<pre>{{ sample.response }}</pre></div>
{% endfor %}
</details>
{% endfor %}
</section>
{% endif %}
</main>
<footer>This page is one file: it loads nothing and can be kept or mailed as it is.</footer>
</body>
</html>
"""
