"""Single flows in a report: what it was, what became of it, and its waterfall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from framewire._counts import counted
from framewire.history import OUTCOMES, Flow
from framewire.report.markup import Element, el
from framewire.report.waterfall import waterfall_picture
from framewire.report.wording import moment, short, short_names, span
from framewire.spark.legs import Story

__all__ = ["flow_articles"]

_LONGEST_TEXT = 240


def flow_articles(name: str, flows: Sequence[Flow], stories: Mapping[str, Story]) -> list[Element]:
    """A heading, the facts and the waterfall of each flow."""
    return [_article(f"{name}-{number}", flow, stories.get(flow.flow)) for number, flow in enumerate(flows, 1)]


def _article(name: str, flow: Flow, story: Story | None) -> Element:
    outcome = flow.outcome if flow.outcome in OUTCOMES else "open"
    heading = el(
        "h3", short(flow.message, 60), " ", el("span", short(flow.outcome, 20), class_=f"badge badge-{outcome}")
    )
    origin = short_names({flow.origin})[flow.origin] if flow.origin else "an unknown node"
    facts = (
        f" · {moment(flow.started_at)} UTC · from {origin} · {span(flow.duration_us)} · "
        f"{counted(flow.messages, 'message')} on {counted(flow.nodes, 'node')}"
    )
    said = None
    if flow.exception:
        said = el("p", f"{short(flow.exception, 80)}: {short(flow.exception_text, _LONGEST_TEXT)}", class_="said")
    elif flow.dead_reasons:
        reasons = ", ".join(short(reason, 40) for reason in flow.dead_reasons[:5])
        said = el("p", f"dead letters: {reasons}", class_="said")
    picture = None
    if story is not None and story.legs:
        drawn = waterfall_picture(story, name=name)
        picture = el("div", drawn, class_="scroll", tabindex=0, role="region", aria_label=f"Waterfall of {name}")
    return el("article", heading, el("p", el("code", short(flow.flow, 48)), facts), said, picture, class_="flow")
