"""A cluster and its history in a browser: ``framewire dashboard``.

Live data comes from the nodes by framewire's own messages, history from the files of a lake; nothing is ever
written to either. What captures hold is shown as text only: no element here takes markup.
"""
