"""What Windows lacks: files are locked and memory is measured by these modules, which all of ours take from here."""

from __future__ import annotations

from mechanisms.public.errors import UserError

try:
    import fcntl
    import resource
except ModuleNotFoundError:
    FIX = "WSL (Windows Subsystem for Linux): wsl --install, then pip install dp-synthesis-pipeline in it"
    raise UserError("this system has no fcntl; the pipeline runs on Linux and macOS", fix=FIX) from None

__all__ = ["fcntl", "resource"]
