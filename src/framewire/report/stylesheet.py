"""How reports look: quiet type, one accent, figures in columns; on any screen, dark or light, and on paper."""

from __future__ import annotations

from collections.abc import Mapping

from framewire.report.palette import DARK, LIGHT

__all__ = ["PICTURES", "page_styles", "picture_styles"]

_PAGE = """
*, *::before, *::after { box-sizing: border-box }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 1rem }
body { margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: anywhere;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", sans-serif;
  font-variant-numeric: tabular-nums; text-rendering: optimizeLegibility }
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 0 clamp(1rem, 4vw, 2.5rem) }
header { padding-top: clamp(1.5rem, 5vw, 3.5rem) }
.top { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: .5rem 2rem }
.mark { margin: 0; color: var(--accent); font-size: .8rem; font-weight: 650; letter-spacing: .14em;
  text-transform: uppercase }
h1 { margin: .35rem 0 .25rem; font-size: clamp(1.9rem, 5vw, 2.9rem); line-height: 1.12; font-weight: 640;
  letter-spacing: -.022em; text-wrap: balance }
.period { margin: 0; color: var(--soft); font-size: 1.02rem }
h2 { margin: 0 0 .3rem; font-size: 1.45rem; line-height: 1.25; font-weight: 620; letter-spacing: -.012em }
h3 { margin: 0; font-size: 1.02rem; font-weight: 620; line-height: 1.4 }
section { margin: 0; padding: 2.6rem 0 0 }
section > p { max-width: 44rem; margin: .2rem 0 1rem; color: var(--soft) }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: .18em }
code, .code { font-family: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace;
  font-size: .86em }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; border-radius: 2px }

.theme { border: 0; margin: 0; padding: 0; display: flex; gap: .1rem; font-size: .82rem; color: var(--soft) }
.theme legend, .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
.theme label { padding: .2rem .6rem; border-radius: 99px; cursor: pointer }
.theme input { position: absolute; opacity: 0; width: 1px; height: 1px }
.theme label:has(:checked) { background: var(--raised); color: var(--ink) }
.theme label:has(:focus-visible) { outline: 2px solid var(--accent) }

.figures { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); column-gap: 2rem; margin: 2rem 0 0;
  padding: 0; border-bottom: 1px solid var(--line) }
.figures > div { border-top: 1px solid var(--line); padding: .8rem 0 1rem }
.figures dt { color: var(--soft); font-size: .82rem }
.figures dd { margin: 0 }
.figures .big { font-size: 1.85rem; font-weight: 600; letter-spacing: -.02em; line-height: 1.25 }
.figures .small { color: var(--soft); font-size: .82rem }
.figures .alarming .big { color: var(--failed) }
.findings { margin: 1.6rem 0 0; padding: 0; list-style: none; max-width: 46rem }
.findings li { padding: .3rem 0 .3rem 1.6rem; position: relative }
.findings li::before { content: attr(data-sign); position: absolute; left: .1rem; font-weight: 700;
  color: var(--accent) }
.findings .wrong::before { color: var(--failed) }
.contents { margin: 1.8rem 0 0; font-size: .9rem }
.contents ul { display: flex; flex-wrap: wrap; gap: .25rem 1.2rem; margin: 0; padding: 0; list-style: none }

figure { margin: 0 0 1rem }
.scroll { overflow-x: auto; max-width: 100% }
.picture { display: block; width: 100%; min-width: 37rem; height: auto }
table { border-collapse: collapse; width: 100%; font-size: .9rem; line-height: 1.4 }
caption { text-align: left; color: var(--soft); font-size: .82rem; padding: .3rem 0 .5rem }
th, td { text-align: left; vertical-align: baseline; padding: .38rem 1.1rem .38rem 0; font-weight: 400;
  border-bottom: 1px solid var(--line); overflow-wrap: normal }
thead th, thead .code { color: var(--soft); font-family: inherit; font-size: .8rem; white-space: nowrap;
  border-bottom-color: var(--faint) }
tr > :last-child { padding-right: 0 }
tbody th { min-width: 9rem }
.number { text-align: right; white-space: nowrap }
.alarm { color: var(--failed); font-weight: 600 }
td .share { display: inline-block; min-width: 3.6rem; text-align: right; color: var(--soft) }
.more { margin: .5rem 0 0; color: var(--soft); font-size: .85rem }
.tabular { margin: 0 0 1.4rem }
.none { color: var(--soft); margin: .4rem 0 0 }
.flow { margin: 1.3rem 0 0; padding-top: 1.1rem; border-top: 1px solid var(--line); break-inside: avoid-page }
.flow:first-of-type { border-top: 0 }
.flow p { margin: .15rem 0 .5rem; color: var(--soft); font-size: .9rem }
.flow .said { color: var(--failed) }
.badge { display: inline-block; margin-left: .5rem; padding: 0 .55rem; border-radius: 99px; font-size: .78rem;
  font-weight: 600; border: 1px solid currentColor; vertical-align: .08em }
.badge-completed { color: var(--good) } .badge-failed { color: var(--failed) }
.badge-expired { color: var(--warning) } .badge-dead { color: var(--dead) } .badge-open { color: var(--soft) }
details { margin: 0 0 1rem; font-size: .9rem }
summary { cursor: pointer; color: var(--soft); font-size: .85rem }
footer { margin-top: 3.5rem; padding-bottom: 3rem; color: var(--soft); font-size: .85rem }
footer p { border-top: 1px solid var(--line); padding-top: 1rem; margin: 0 }
@media (max-width: 44rem) {
  .figures { grid-template-columns: repeat(2, minmax(0, 1fr)); column-gap: 1.2rem }
  .figures .big { font-size: 1.5rem }
  th, td { padding-right: .8rem }
}
@media print {
  @page { size: A4; margin: 16mm 15mm }
  body { font-size: 10pt; line-height: 1.45 }
  main, header, footer { max-width: none; padding-inline: 0 }
  header { padding-top: 0 }
  .theme, .contents, summary { display: none }
  section { padding-top: 1.6rem }
  h2, h3, caption, section > p, .flow p { break-after: avoid }
  tr, figure, .figures > div { break-inside: avoid }
  .picture { min-width: 0 }
  .scroll { overflow: visible }
  .figures { grid-template-columns: repeat(4, minmax(0, 1fr)) }
  .figures .big { font-size: 15pt }
  a { color: inherit; text-decoration: none }
}
"""

PICTURES = """
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", sans-serif;
  font-variant-numeric: tabular-nums; fill: var(--ink) }
svg .tick, svg .key { font-size: 11px; fill: var(--soft) }
.end { text-anchor: end } .middle { text-anchor: middle }
.grid { stroke: var(--line); stroke-width: 1 } .axis { stroke: var(--faint); stroke-width: 1 }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round }
.p50 { stroke: var(--accent); stroke-width: 2.4 } .p95 { stroke: var(--completed) }
.p99 { stroke: var(--expired); stroke-dasharray: 5 3 }
.dot { stroke: none } .dot.p50 { fill: var(--accent) } .dot.p95 { fill: var(--completed) }
.dot.p99 { fill: var(--expired) }
.key-p50 { fill: var(--accent) } .key-p95 { fill: var(--completed) } .key-p99 { fill: var(--expired) }
.hops { fill: var(--calm); opacity: .55 } rect:hover { opacity: .8 }
.fill-completed { fill: var(--completed) } .fill-failed { fill: var(--failed) } .fill-open { fill: var(--open) }
.fill-expired { fill: url(#pattern-expired) } .fill-dead { fill: url(#pattern-dead) }
.ground-expired { fill: var(--expired) } .ground-dead { fill: var(--dead) }
.hatch { stroke: var(--paper); stroke-width: 1.4 } .stipple { fill: var(--paper) }
.edge { fill: none; stroke-linecap: butt; opacity: .72 }
.edge-calm { stroke: var(--calm) } .edge-some { stroke: var(--some) }
.edge-much { stroke: var(--much); stroke-dasharray: 7 2 }
.head { opacity: .9 } .head-calm { fill: var(--calm) } .head-some { fill: var(--some) }
.head-much { fill: var(--much) }
g:hover > .edge, g:hover > .head { opacity: 1 }
.paper { fill: var(--paper) } .ground { fill: var(--paper); opacity: .88 }
svg .edge-label { font-size: 11px; text-anchor: middle }
.node { fill: var(--paper); stroke: var(--accent); stroke-width: 2.5 }
svg .node-name { font-weight: 620; paint-order: stroke; stroke: var(--paper); stroke-width: 4px }
.stripe { fill: var(--raised); opacity: .55 }
.bar-way { stroke: var(--way); stroke-width: 3 }
.bar-wait { stroke: var(--wait); stroke-width: 3; stroke-dasharray: 2 3 }
.bar-work { fill: var(--work) } .bar-failed { fill: var(--failed) }
.cross { stroke: var(--failed); stroke-width: 2.2; fill: none }
.hub { fill: var(--completed) } .end-mark { fill: var(--soft) }
svg .wrong { fill: var(--failed) } svg .right { fill: var(--good) }
"""
"""What pictures need, on a page or alone."""


def page_styles() -> str:
    """The stylesheet of a report. A choice of light or dark overrides what the system prefers."""
    return (
        f":root {{ color-scheme: light; {_variables(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ color-scheme: dark; {_variables(DARK)} }} }}\n"
        f":root:has(#theme-light:checked) {{ color-scheme: light; {_variables(LIGHT)} }}\n"
        f":root:has(#theme-dark:checked) {{ color-scheme: dark; {_variables(DARK)} }}\n"
        f"@media print {{ :root, :root:has(#theme-dark:checked) {{ color-scheme: light; {_variables(LIGHT)} }} }}\n"
        f"{_PAGE}{PICTURES}"
    )


def picture_styles() -> str:
    """The stylesheet of a picture that stands alone."""
    dark = f"@media (prefers-color-scheme: dark) {{ svg {{ {_variables(DARK)} }} }}"
    return f"svg {{ {_variables(LIGHT)} }}\n{dark}\n{PICTURES}"


def _variables(colours: Mapping[str, str]) -> str:
    return "; ".join(f"--{name}: {colour}" for name, colour in colours.items())
