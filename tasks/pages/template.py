"""The report of a run: one HTML file without external resources.

A string instead of a separate file, because Flyte's code bundles contain modules only.
"""

MACROS = """
{% macro suite_table(suites) %}
<div class="card scroll"><table>
<thead><tr><th></th><th class="n">problems</th>{% for model in suites.models %}\
<th class="n">{{ model }}</th>{% endfor %}</tr></thead>
<tbody>
{% for group in suites.groups %}
{% if group.title %}<tr class="rule"><th colspan="{{ suites.models|length + 2 }}">\
{{ group.title }}</th></tr>{% endif %}
{% for row in group.rows %}
<tr><th>{{ row.label }}</th><td class="n">{{ row.problems }}</td>
{% for cell in row.cells %}\
<td class="heat" style="background:{{ cell.colour }}">{{ cell.text }}</td>{% endfor %}</tr>
{% endfor %}
{% endfor %}
</tbody></table></div>
{% endmacro %}
{% macro answer_cards(answers) %}
{% for one in answers %}
<details class="card"><summary>{{ one.title }} {% for answer in one.answers %}\
<span class="pill {{ answer.kind }}">{{ answer.model }}: {{ answer.outcome }}</span> \
{% endfor %}</summary>
<table><tbody><tr><th>prompt</th><td><code>{{ one.prompt }}</code></td></tr>
<tr><th>reference</th><td><code>{{ one.reference }}</code></td></tr>
{% for answer in one.answers %}<tr><th>{{ answer.model }}</th>\
<td><code>{{ answer.text }}</code></td></tr>{% endfor %}
</tbody></table></details>
{% endfor %}
{% endmacro %}
"""
"""What more than one page shows: accuracy by suite and model, and answers side by side."""
PAGE = (
    MACROS
    + """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{{ page.title }}</title>
<style>{{ style|safe }}</style>
</head>
<body>
{% macro chart(figure) %}
<figure class="card"><figcaption><h3>{{ figure.title }}<b>{{ figure.numbers }}</b></h3>\
<p>{{ figure.note }}</p>{% if figure.key %}<p class="key drawn">\
{% for colour, text in figure.key %}<span><i style="background:{{ colour }}"></i>{{ text }}</span>\
{% endfor %}</p>{% endif %}</figcaption>
{{ figure.svg|safe }}</figure>
{% endmacro %}
<header><div>
<p class="eyebrow">EachPrompt<span>{{ page.workflow }}</span>\
<span>execution {{ page.execution }}</span><span>{{ page.started }}</span></p>
<span class="pill {{ page.verdict.kind }}">{{ page.verdict.text }}</span>
<h1>{{ page.headline }}</h1>
<dl class="tiles">
{% for tile in page.tiles %}
<div><dt>{{ tile.label }}</dt><dd>{{ tile.value }}<small>{{ tile.note }}</small></dd></div>
{% endfor %}
</dl>
</div></header>
<main>
{% if page.progression %}
<section><h2>Did it get better?</h2>
<p class="lede">{{ page.progression_note }}</p>
<div class="grid two">{% for figure in page.progression %}{{ chart(figure) }}{% endfor %}</div>
{% if page.floors %}
<p class="lede">These task families count in no headline: the model does not earn more for \
certain than a text that does no task.</p>
<div class="card scroll"><table>
<thead><tr><th>task family</th><th>text that does no task</th><th class="n">it earns</th>\
<th class="n">the model earns more, points</th><th class="n">interval</th></tr></thead>
<tbody>
{% for row in page.floors %}
<tr><th>{{ row.family }}</th><td>{{ row.text }}</td><td class="n">{{ row.score }}</td>\
<td class="n">{{ row.difference }}</td><td class="n">{{ row.interval }}</td></tr>
{% endfor %}
</tbody></table></div>
{% endif %}
</section>
{% endif %}
{% if page.suites %}
<section><h2>Where?</h2>
<p class="lede">Share of held-out responses that solve their problem, for every task family, \
language and source.{{ page.suites_note }}</p>
{{ suite_table(page.suites) }}
{% if page.lengths %}
<details class="card"><summary>How long are the responses? <span>tokens of a response, mean; of \
a model that thinks or answers at once, each mode is a source</span></summary>
{{ suite_table(page.lengths) }}
</details>
{% endif %}
</section>
{% endif %}
{% if page.precisions %}
<section><h2>What does another precision change?</h2>
<p class="lede">Both precisions read the responses that the first one drew, at temperature 1. \
KL is of the first precision to the other a token, estimated by k3; routes are the choices of \
experts, of a token in a layer, that differ, and tokens those with a difference in any layer. \
What is solved is compared on the answers that each gave itself.</p>
{% for table in page.precisions %}
<h3>{{ table.title }}</h3>{% if table.layers %}<p>{{ table.layers }}</p>{% endif %}
<div class="card scroll"><table>
<thead><tr><th></th><th class="n">solved, points</th><th class="n">interval</th>\
<th class="n">KL, nats</th><th class="n">interval</th><th class="n">routes differ</th>\
<th class="n">tokens differ</th></tr></thead>
<tbody>
{% for row in table.rows %}<tr><th>{{ row.label }}{% if row.kind %} \
<span class="pill {{ row.kind }}">{{ "fewer" if row.kind == "no" else "more" }}</span>{% endif %}\
</th><td class="n">{{ row.points }}</td><td class="n">{{ row.reach }}</td>\
<td class="n">{{ row.kl }}</td><td class="n">{{ row.kl_reach }}</td>\
<td class="n">{{ row.routes }}</td><td class="n">{{ row.tokens }}</td></tr>
{% endfor %}
</tbody></table></div>
{% endfor %}
</section>
{% endif %}
{% if page.answers %}
<section><h2>What does it answer?</h2>
<p class="lede">{{ page.answers|length }} held-out problems that their ids draw, in turn from \
every task family and language, with the first answer of the first and of the last model.</p>
{{ answer_cards(page.answers) }}
</section>
{% endif %}
{% if page.rules %}
<section><h2>May it be released?</h2>
<p class="lede">{{ page.rules_note }}</p>
<div class="card" style="padding:0"><ul class="rules">
{% for rule in page.rules %}<li>{% if rule.kind %}<span class="pill {{ rule.kind }}">\
{{ rule.outcome }}</span> {% endif %}<span>{{ rule.text }}</span></li>{% endfor %}</ul></div>
</section>
{% endif %}
{% if page.phases %}
<section><h2>Reinforcement learning</h2>
<p class="lede">{{ page.phases_note }}</p>
<p class="key drawn">{% for phase in page.phases_key %}\
<span><i style="background:{{ phase.colour }}"></i>{{ phase.name }}</span>{% endfor %}</p>
<div class="grid">{% for figure in page.phases %}{{ chart(figure) }}{% endfor %}</div>
{% for phase in page.slices %}
<details class="card"><summary>{{ phase.name }} by language and task family \
<span>{{ phase.note }}</span></summary>
<div class="scroll"><table>
<thead><tr><th></th>{% for name in phase.columns %}<th class="n">{{ name }}</th>{% endfor %}\
</tr></thead>
<tbody>
{% for row in phase.rows %}<tr><th>{{ row.label }}</th>\
{% for cell in row.cells %}<td class="n">{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody></table></div></details>
{% endfor %}
</section>
{% endif %}
{% if page.tunings %}
<section><h2>Fine-tuning</h2>
<p class="lede">RL starts from the checkpoint with the smallest validation loss inside the \
entropy window, or else from the nearest to it: a model with too little entropy does not \
explore.</p>
<p class="key drawn"><span><i style="background:{{ colours.neutral }}"></i>training loss</span>\
<span><i style="background:{{ colours.tuned }}"></i>validation loss, entropy</span>\
<span><i class="band" style="background:{{ colours.window }}"></i>entropy window</span>\
<span><i class="ring"></i>chosen checkpoint</span></p>
<div class="grid two">{% for figure in page.tunings %}{{ chart(figure) }}{% endfor %}</div>
{% for group in page.samples %}
<details class="card"><summary>{{ group.title }}: samples of every epoch \
<span>{{ group.prompts | length }} held-out prompts, the first tokens of one response each at \
temperature 1; they are cut, so that no verifier has scored them</span></summary>
{% for one in group.prompts %}<table><tbody><tr><th>{{ one.title }}</th>\
<td><code>{{ one.prompt }}</code></td></tr>
{% for name, text in one.rows %}<tr><th>{{ name }}</th><td><code>{{ text }}</code></td></tr>\
{% endfor %}</tbody></table>{% endfor %}</details>
{% endfor %}
</section>
{% endif %}
{% if page.funnel %}
<section><h2>From raw rows to training data</h2>
<p class="lede">{{ page.funnel_note }}</p>
<div class="card scroll"><table>
<thead><tr><th>source</th><th>what happened</th><th class="n">items</th><th></th></tr></thead>
<tbody>
{% for row in page.funnel %}
<tr><th>{{ row.source }}</th><td>{{ row.label }}</td><td class="n">{{ row.count }}</td>\
<td class="bar"><i class="{{ row.kind }}" style="width:{{ row.width }}%"></i></td></tr>
{% endfor %}
</tbody></table></div>
</section>
{% endif %}
{% if page.stages %}
<section><h2>Stages</h2>
<p class="lede">{{ page.stages_note }}</p>
<div class="card scroll"><table>
<thead><tr><th>stage</th><th></th><th class="n">time</th><th class="n">rows in</th>\
<th class="n">rows out</th><th>why</th></tr></thead>
<tbody>
{% for row in page.stages %}
<tr><th>{{ row.stage }}</th>\
<td><span class="pill {{ row.kind }}">{{ row.state }}</span></td>\
<td class="n">{{ row.time }}</td><td class="n">{{ row.rows_in }}</td>\
<td class="n">{{ row.rows_out }}</td><td class="why">{{ row.why }}</td></tr>
{% endfor %}
</tbody></table></div>
</section>
{% endif %}
{% if page.settings %}
<section><h2>Settings</h2>
<p class="lede">Every setting of this execution.</p>
<details class="card"><summary>Changed from the default <span>{{ page.settings_changed|length }} \
value{{ "" if page.settings_changed|length == 1 else "s" }}</span></summary>
<table><tbody>{% for name in page.settings_changed %}<tr><td><code>{{ name }}</code></td></tr>\
{% endfor %}</tbody></table></details>
{% for group in page.settings %}
<details class="card"><summary>{{ group.title }} <span>{{ group.note }}</span></summary>
<table><tbody>{% for row in group.rows %}<tr><th>{{ row.name }}</th>\
<td><code>{{ row.value }}</code></td></tr>{% endfor %}</tbody></table></details>
{% endfor %}
</section>
{% endif %}
{% if page.places %}
<section><h2>Where things are</h2>
<p class="lede">Results of this execution outside this page.</p>
<div class="card"><dl class="places">{% for name, place in page.places %}<dt>{{ name }}</dt>\
<dd><code>{{ place }}</code></dd>{% endfor %}</dl></div>
</section>
{% endif %}
</main>
<footer>{{ page.footer }}</footer>
</body>
</html>
"""
)
