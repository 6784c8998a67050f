package trigram

// Split is split, for a comparison with the definition of similarity.
var Split = split
