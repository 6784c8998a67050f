package nodes

// Living returns the servers that live, including this one, sorted by name.
func (d *Directory) Living() []Node { return d.view.Load().living }
