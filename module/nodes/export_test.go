package nodes

// Living are the servers that live, with this one, by name.
func (d *Directory) Living() []Node { return d.view.Load().living }
