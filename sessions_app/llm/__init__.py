"""Models: building one, streaming its reply, and the offline ones. No Django in here."""
