package schema

var vectorFunctions = family("Vectors",
	fn("L1Norm", 1, 1, float),
	fn("L2Norm", 1, 1, float),
	fn("LinfNorm", 1, 1, float),
	fn("LpNorm", 2, 2, float),
	fn("L1Normalize", 1, 1, tuple),
	fn("L2Normalize", 1, 1, tuple),
	fn("LinfNormalize", 1, 1, tuple),
	fn("LpNormalize", 2, 2, tuple),
	fn("L1Distance", 2, 2, float),
	fn("L2Distance", 2, 2, float),
	fn("LinfDistance", 2, 2, float),
	fn("LpDistance", 3, 3, float),
	fn("cosineDistance", 2, 2, float),
)
