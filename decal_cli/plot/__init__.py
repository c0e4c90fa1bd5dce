"""Pictures of a sweep, a study or a replay: the only room that knows matplotlib, imported when one is drawn."""
