package hogql

// inSingleQuotes is a hint for text that was written in double quotes, which are those of names, and what to write instead.
func inSingleQuotes(content string) (hint, fix string) {
	fix = PrintExpr(&Const{Value: content})
	return "Double quotes are for names. Write text in single quotes: " + fix, fix
}

// SingleQuotes returns the hint for a name in double quotes that is probably meant to be text, and what to write instead of it.
// Both are empty for a name that was written in another way.
func (n Name) SingleQuotes() (hint, fix string) {
	if !n.Double {
		return "", ""
	}
	return inSingleQuotes(n.Text)
}
