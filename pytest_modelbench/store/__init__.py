"""Results as JSON lines that git can merge, evidence by content, and who may write them now.

``layout`` says where what lies, ``writer`` appends, ``reader`` makes an ``Index`` (``index``) of
all that is stored, ``evidence`` keeps what is too large for a line, ``lock`` lets one run measure.
"""
