package schema

var windowFunctions = family("Window functions",
	window("row_number", 0, 0, integer.never()),
	window("rank", 0, 0, integer.never()),
	window("dense_rank", 0, 0, integer.never()),
	agg("first_value", 1, 1, same, withIf...),
	agg("last_value", 1, 1, same, withIf...),
	window("nth_value", 2, 2, same),
	window("lagInFrame", 1, 3, same),
	window("leadInFrame", 1, 3, same),
	window("lag", 1, 3, same.orNull()).as("lagInFrame").rule(RuleLagLead),
	window("lead", 1, 3, same.orNull()).as("leadInFrame").rule(RuleLagLead),
)
