package schema

var otherFunctions = family("Other",
	fn("transform", 3, 4, unknown),
	fn("bar", 4, 4, text),
	fn("isFinite", 1, 1, boolean),
	fn("isInfinite", 1, 1, boolean),
	fn("isNaN", 1, 1, boolean),
	fn("formatReadableSize", 1, 1, text),
	fn("formatReadableDecimalSize", 1, 1, text),
	fn("formatReadableQuantity", 1, 1, text),
	fn("formatReadableTimeDelta", 1, 2, text),
	fn("indexHint", 1, 1, boolean.never()),
	fn("sparkline", 1, 1, tuple).as("tuple").rule(RuleTag).extra("Sparkline", "data"),
	fn("recordingButton", 1, 2, tuple).as("tuple").rule(RuleTag).extra("RecordingButton", "sessionId", "recordingStatus"),
	fn("explainCSPReport", 1, 1, tuple).as("tuple").rule(RuleTag).extra("ExplainCSPReport", "properties"),
	macro("extractIPv4Substrings", 1,
		`extractAll({a}, '(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])[.]){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])')`),
)
