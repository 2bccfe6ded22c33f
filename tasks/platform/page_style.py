"""Filling the templates of the HTML pages, and their style: no external resources.

Classes: `lede` opens a section, `card` holds one thing, `grid` lays cards out.
"""

from jinja2 import Environment, StrictUndefined

from tasks.formats.script_data import visible


def fill(template: str, **values: object) -> str:
    """Fill a template: texts are escaped, and a name that it lacks is an error."""
    environment = Environment(
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.from_string(template).render(**values)


STYLE = """
:root{--ink:#1c2733;--muted:#66727f;--line:#e3e8ed;--paper:#f5f7f9;--card:#fff;--good:#1a7f5a;
--unclear:#8a6100;--unclear-soft:#fdf1d3;--shade:#c3ccd5;
--good-soft:#e3f3ec;--bad:#b3372f;--bad-soft:#fbe9e7;--plain-soft:#edf0f3;--accent:#b8491a;
--font:Inter,"SF Pro Text",system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,
"Liberation Sans",sans-serif;--mono:ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono",
monospace}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.55 var(--font);
font-variant-numeric:tabular-nums}
main,header>div,footer{max-width:1180px;margin:0 auto;padding:0 24px}
header{background:var(--card);border-bottom:1px solid var(--line);padding:40px 0 32px}
.eyebrow{color:var(--muted);font-size:13px;margin:0 0 10px}
.eyebrow span{display:inline-block}.eyebrow span::before{content:"\\00b7";margin:0 .5em}
h1{font-size:32px;line-height:1.2;letter-spacing:-.02em;font-weight:650;margin:14px 0 10px;
max-width:24em;text-wrap:balance}
h2{font-size:21px;letter-spacing:-.01em;font-weight:640;margin:52px 0 4px}
h3{font-size:15px;font-weight:620;margin:0;display:flex;justify-content:space-between;gap:12px}
h3 b{font-weight:500;font-size:13px;white-space:nowrap;align-self:center}
p{margin:0}
.lede{color:var(--muted);max-width:46em;margin:0 0 18px}
.pill{display:inline-block;border-radius:99px;padding:4px 13px;font-size:13px;font-weight:620}
.unclear{background:var(--unclear-soft);color:var(--unclear)}
.yes{background:var(--good-soft);color:var(--good)}.no{background:var(--bad-soft);color:var(--bad)}
.plain{background:var(--plain-soft);color:var(--muted)}
.tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:0;margin:26px 0 0;
border:1px solid var(--line);border-radius:10px}
.tiles>div{padding:14px 18px;border-left:1px solid var(--line)}
.tiles>div:first-child{border-left:0}
.tiles dt{color:var(--muted);font-size:13px}
.tiles dd{margin:2px 0 0;font-size:23px;font-weight:640;letter-spacing:-.01em}
.tiles small{display:block;color:var(--muted);font-size:13px;font-weight:400;letter-spacing:0}
.grid{display:grid;gap:16px;grid-template-columns:repeat(auto-fill,minmax(min(100%,344px),1fr))}
.grid.two{grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr))}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 18px;
margin:0;min-width:0}
figure.card{display:flex;flex-direction:column}
figcaption p{color:var(--muted);font-size:13px;line-height:1.4;margin:1px 0 8px}
.card svg{display:block;width:100%;height:auto;margin-top:auto;overflow:visible}
.two .card svg{margin-top:0}
svg text{font-family:var(--font);font-variant-numeric:tabular-nums}
.key{display:flex;flex-wrap:wrap;gap:4px 18px;margin:0 0 14px;font-size:13px;color:var(--muted)}
.key i,.dot{display:inline-block;width:10px;height:10px;border-radius:50%;margin-right:7px}
.key .ring{background:none!important;border:2px solid var(--ink)}
.key .band{border-radius:2px;width:16px}
/* A shadow at the edge behind which a table goes on; it moves away with the content. */
.scroll{overflow-x:auto;padding:0;background:
linear-gradient(90deg,var(--card) 40%,transparent) local no-repeat 0/48px 100%,
linear-gradient(270deg,var(--card) 40%,transparent) local no-repeat 100%/48px 100%,
linear-gradient(90deg,var(--shade),transparent) no-repeat 0/14px 100%,
linear-gradient(270deg,var(--shade),transparent) no-repeat 100%/14px 100%,var(--card)}
table{border-collapse:separate;border-spacing:0;width:100%;font-size:14px}
th,td{text-align:left;padding:9px 12px;border-top:1px solid var(--line);vertical-align:top}
th{font-weight:600}
thead th{border-top:0;color:var(--muted);font-size:13px;font-weight:500;
vertical-align:bottom}
th:first-child,td:first-child{padding-left:18px}th:last-child,td:last-child{padding-right:18px}
td.n,th.n{text-align:right}td.n{white-space:nowrap}
td.why{color:var(--muted);min-width:18em}
tbody th{white-space:nowrap}
.scroll tbody th{position:sticky;left:0;background:var(--card)}
td.heat{text-align:right;white-space:nowrap;border-color:#fff}
td .pill{padding:1px 10px;font-weight:500;white-space:nowrap}
tr.rule th{border-top:2px solid var(--line);color:var(--muted);font-weight:500;font-size:13px;
padding-top:14px}
.bar{position:relative;min-width:9em;width:32%}
.bar i{display:block;height:10px;margin-top:6px;border-radius:3px;background:#c9d6e2;min-width:2px}
.bar i.good{background:#7fbfa4}.bar i.bad{background:#dd9c94}
ul.rules{list-style:none;margin:0;padding:0}
ul.rules li{padding:9px 18px;border-top:1px solid var(--line);display:flex;gap:14px;
align-items:baseline;font-size:14px}
ul.rules .pill{padding:1px 10px;font-weight:500;flex:none;min-width:68px;text-align:center}
ul.rules li span:last-child{min-width:0;overflow-wrap:anywhere}
ul.rules li:first-child{border-top:0}
details.card{padding:0;margin-bottom:8px}
summary{cursor:pointer;padding:12px 18px;font-weight:600;font-size:14px;overflow-wrap:anywhere}
summary span{color:var(--muted);font-weight:400}
code{font:12.5px/1.5 var(--mono);overflow-wrap:anywhere}
td code{white-space:pre-wrap}
details th{font-weight:400;white-space:normal}
dl.places{display:grid;grid-template-columns:max-content 1fr;gap:6px 18px;margin:0}
dl.places dt{color:var(--muted)}dl.places dd{margin:0}
footer{color:var(--muted);font-size:13px;padding-top:40px;padding-bottom:56px}
@media(max-width:760px){main,header>div,footer{padding-left:16px;padding-right:16px}
header{padding:26px 0 22px}h1{font-size:25px}h2{margin-top:40px}
.tiles{grid-template-columns:1fr 1fr}.tiles>div{padding:12px 14px}
.tiles>div:nth-child(3){border-left:0}.tiles>div:nth-child(n+3){border-top:1px solid var(--line)}
/* A name within the width stays whole, and its table goes on sideways; a longer one breaks. */
.scroll tbody th{white-space:normal;min-width:9em;max-width:14em;overflow-wrap:break-word}
.tiles dd{font-size:20px}.card{padding:14px}.card.scroll,details.card{padding:0}
dl.places{grid-template-columns:1fr;gap:0}dl.places dd{margin-bottom:10px}}
nav{max-width:1180px;margin:14px auto 0;padding:0 24px;display:flex;flex-wrap:wrap;gap:4px 16px;
font-size:13px}
a{color:var(--accent)}nav a{text-decoration:none}nav a:hover{text-decoration:underline}
nav+nav a{color:var(--muted)}
@media(max-width:760px){nav{padding:0 16px}}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaee;--muted:#9aa6b2;--line:#2d3742;
--unclear:#e3bd4f;--unclear-soft:#3b3115;--shade:#000;
--paper:#12171c;--card:#1a2129;--good:#6fcfa5;--good-soft:#173529;--bad:#f0958d;--bad-soft:#40211f;
--plain-soft:#27303a;--accent:#f0a37c;color-scheme:dark}
td.heat{border-color:var(--card)}.bar i,.stack i{opacity:.85}
figure.card svg{filter:invert(.92) hue-rotate(180deg)}}
@media print{body{background:#fff}.card,.tiles{break-inside:avoid}}
"""
