"""What the report of a study may be asked; each question is answered by a page. Standard library only."""

from typing import Literal, get_args

Question = Literal["scaling", "communication", "comparison", "published", "audit", "quality"]
#: In the order of the pages; a question's name is that of its notebook.
QUESTIONS: tuple[Question, ...] = get_args(Question)
#: The question whose answer needs a declared reference.
COMPARISON: Question = "comparison"
#: The question whose answer needs published sources.
PUBLISHED: Question = "published"
