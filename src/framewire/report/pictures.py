"""Pictures that stand alone: the topology and a flow's waterfall as SVG files, for pages that are not reports."""

from __future__ import annotations

from collections.abc import Iterable

from framewire.history import Topology
from framewire.report.markup import Element, el, written
from framewire.report.network import topology_picture
from framewire.report.stylesheet import picture_styles
from framewire.report.waterfall import waterfall_picture
from framewire.spark.legs import Story

__all__ = ["most_to_see", "topology_svg", "waterfall_svg"]

_MARGIN = 24
_ENOUGH = 12
_SEEN = 0.02


def topology_svg(topology: Topology) -> str:
    """The picture of a topology, in the colours that its reader prefers."""
    return _alone(topology_picture(topology))


def waterfall_svg(story: Story) -> str:
    """The picture of a flow."""
    return _alone(waterfall_picture(story, name="waterfall"))


def most_to_see(stories: Iterable[Story]) -> Story | None:
    """The flow whose picture shows most: many kinds of messages, and none so long that the others are dots."""

    def seen(story: Story) -> tuple[int, int]:
        length = max(story.ended - story.began, 1.0)
        legs = [leg for leg in story.legs[:_ENOUGH] if (leg.ended - leg.began) / length >= _SEEN]
        return len({leg.message for leg in legs}), len(legs)

    return max((story for story in stories if story.legs), key=seen, default=None)


def _alone(picture: Element) -> str:
    """A file of its own: with its own styles, ground and margin, because it may be shown on any page."""
    attributes = dict(picture.attributes)
    width, height = (float(size) for size in (attributes.pop("viewBox") or "").split()[2:])
    whole = {"width": width + 2 * _MARGIN, "height": height + 2 * _MARGIN}
    title, about, *parts = picture.children
    moved = el("g", parts, transform=f"translate({_MARGIN} {_MARGIN})")
    drawn = Element(
        "svg",
        (*attributes.items(), ("viewBox", f"0 0 {whole['width']:g} {whole['height']:g}")),
        (title, about, el("rect", **whole, rx=8, class_="paper"), moved),
    )
    text = written(drawn)
    opened = text.index(">") + 1
    return f"{text[:opened]}<style>{picture_styles()}</style>{text[opened:]}\n"
