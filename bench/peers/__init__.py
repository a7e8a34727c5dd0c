"""framewire beside what people would use instead: ``make peers``."""
