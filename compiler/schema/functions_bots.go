package schema

var botFunctions = family("Bots",
	bot("getTrafficType", BotTraffic, text.never()),
	bot("getTrafficCategory", BotCategory, text.never()),
	bot("isLikelyBot", BotLikely, boolean.never()),
	bot("getBotType", BotKind, text.never()),
	bot("getBotName", BotName, text.never()),
	bot("getBotOperator", BotOperator, text.never()),
	bot("__preview_getTrafficType", BotTraffic, text.never()),
	bot("__preview_getTrafficCategory", BotCategory, text.never()),
	bot("__preview_isBot", BotLikely, boolean.never()),
	bot("__preview_getBotType", BotKind, text.never()),
	bot("__preview_getBotName", BotName, text.never()),
	bot("__preview_getBotOperator", BotOperator, text.never()),
)

// bot starts the entry of a function about a user agent.
func bot(name string, fact BotFact, result Result) Function {
	f := fn(name, 1, 2, result).as("multiMatchAnyIndex").rule(RuleBot)
	f.Bot = fact
	return f
}
