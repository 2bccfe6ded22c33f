"""The style of a page: that of the platform, and what only pages with tables and charts need."""

from tasks.platform import page_style

WIDE_TABLES = """
/* A table wider than its place says so: a scroll timeline runs only where there is something to
scroll, so the line has a height only there. A browser without timelines has it on narrow pages. */
.scroll::before{content:"Scroll sideways for more columns \\2192";display:block;position:sticky;
left:0;width:max-content;max-width:100%;color:var(--muted);font-size:12.5px;max-height:0;
overflow:hidden;animation:goes-on linear both;animation-timeline:scroll(nearest inline)}
@keyframes goes-on{from,to{max-height:3em;padding:8px 18px 2px}}
@supports not (animation-timeline:scroll()){@media(max-width:760px){
.scroll::before{max-height:3em;padding:8px 18px 2px}}}
/* Charts are inverted on a dark page, and so are the colours that their keys name. */
@media(prefers-color-scheme:dark){.key.drawn i:not(.ring){filter:invert(.92) hue-rotate(180deg)}}
.grid+details.card{margin-top:16px}.grid+.lede,.card+.lede{margin-top:22px}
@media print{.scroll::before{display:none}}
"""
STYLE = page_style.STYLE + WIDE_TABLES
