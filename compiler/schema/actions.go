package schema

// MatchesAction is the function that reports whether an event matches an action. It has no row in the table of functions: what it stands for
// is up to the project.
const MatchesAction = "matchesAction"

// MatchedEvents is what the table of events is called in the conditions of actions.
const MatchedEvents = "events"
