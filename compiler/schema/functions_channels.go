package schema

var channelFunctions = family("Channels",
	fn("lookupDomainType", 1, 1, text.orNull()).as("transform").rule(RuleLookup),
	fn("lookupPaidSourceType", 1, 1, text.orNull()).as("transform").rule(RuleLookup),
	fn("lookupPaidMediumType", 1, 1, text.orNull()).as("transform").rule(RuleLookup),
	fn("lookupOrganicSourceType", 1, 1, text.orNull()).as("transform").rule(RuleLookup),
	fn("lookupOrganicMediumType", 1, 1, text.orNull()).as("transform").rule(RuleLookup),
)
