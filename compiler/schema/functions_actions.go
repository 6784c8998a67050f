package schema

// MatchesAction is the function that reports whether an event matches an action.
const MatchesAction = "matchesAction"
