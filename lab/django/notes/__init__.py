"""A small site of notes, with everything of Django that is different for each visitor."""
