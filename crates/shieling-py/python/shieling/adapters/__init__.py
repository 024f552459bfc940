"""Drop-in classes for other systems: original names and texts, this package underneath."""
