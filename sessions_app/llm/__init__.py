"""Models: building one from a spec, streaming a reply, and the offline demo models. No Django in here."""
