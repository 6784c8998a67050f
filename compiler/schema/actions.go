package schema

// MatchesAction is the function that reports whether an event matches an action. It is not in the table of functions, because its meaning depends
// on the project.
const MatchesAction = "matchesAction"

// MatchedEvents is the name of the table of events in the conditions of actions.
const MatchedEvents = "events"
