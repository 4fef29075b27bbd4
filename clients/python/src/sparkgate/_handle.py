"""What both kinds of submissions have in common."""

from __future__ import annotations

from typing import cast

from pydantic import PrivateAttr
from typing_extensions import Self

from sparkgate import _calls, models
from sparkgate.errors import SubmissionFailed


class Handle(models.Submission):
    """A submission as the gateway described it last."""

    _is_replayed: bool = PrivateAttr(False)

    @property
    def is_replayed(self) -> bool:
        """Whether an earlier request with the same idempotency key has created it, for a submission that `submit` returned."""
        return self._is_replayed

    @property
    def has_ended(self) -> bool:
        """Whether the state is terminal: FINISHED, FAILED, KILLED, ERROR or LOST."""
        return _calls.has_ended(self)

    @property
    def succeeded(self) -> bool:
        """Whether the submission has FINISHED, with exit code 0."""
        return self.state == models.SubmissionState.FINISHED

    def _take(self, document: models.Submission) -> Self:
        """Takes over the newer document."""
        for name in models.Submission.model_fields:
            setattr(self, name, getattr(document, name))
        return self

    def _checked(self, check: bool) -> Self:
        if check and self.has_ended and not self.succeeded:
            raise SubmissionFailed(self)
        return self

    @classmethod
    def _of(cls, document: models.Submission) -> Self:
        fields = {name: getattr(document, name) for name in models.Submission.model_fields}
        return cast("Self", cls.model_construct(document.model_fields_set, **fields))
