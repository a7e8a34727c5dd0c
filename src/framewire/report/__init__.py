"""A lake told in one file that a browser shows and a printer prints, and pictures of it.

Asking (``gathered``) and telling (``report_page``) are apart: what is told is bounded, whatever the lake holds.
"""

from framewire.report.facts import Facts, gathered
from framewire.report.page import report_page
from framewire.report.palette import DARK, LIGHT
from framewire.report.pictures import most_to_see, topology_svg, waterfall_svg

__all__ = ["DARK", "LIGHT", "Facts", "gathered", "most_to_see", "report_page", "topology_svg", "waterfall_svg"]
