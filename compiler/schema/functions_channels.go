package schema

var channelFunctions = family("Channels",
	fn("lookupDomainType", 1, 1, text.orNull()).as("transform").lookup(Lookup{Kind: true}),
	fn("lookupPaidSourceType", 1, 1, text.orNull()).as("transform").lookup(Lookup{Kind: true, In: &PaidKinds}),
	fn("lookupPaidMediumType", 1, 1, text.orNull()).as("transform").lookup(Lookup{In: &PaidMedia}),
	fn("lookupOrganicSourceType", 1, 1, text.orNull()).as("transform").lookup(Lookup{Kind: true, In: &OrganicKinds}),
	fn("lookupOrganicMediumType", 1, 1, text.orNull()).as("transform").lookup(Lookup{In: &OrganicMedia}),
)
