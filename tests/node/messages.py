"""Messages that many tests send."""

import msgspec

import framewire as fw


@fw.message("test.question")
class Question(msgspec.Struct):
    text: str = ""


@fw.message("test.answer")
class Answer(msgspec.Struct):
    text: str = ""


@fw.message("test.other")
class Other(msgspec.Struct):
    text: str = ""


@fw.message("test.job")
class Job(msgspec.Struct):
    number: int = 0


@fw.message("test.done")
class Done(msgspec.Struct):
    number: int = 0
