package wire

// Target states of the management service (7.4.6 and 8.3.1).
const (
	Online          = "Online"
	ProbablyOffline = "Probably-offline"
	Offline         = "Offline"
	Good            = "Good"
	NeedsResync     = "Needs-resync"
	Bad             = "Bad"
)

// TargetView is a target in the management service's state. A metadata server has one, with the server's own id.
type TargetView struct {
	Type         string `json:"type"`
	ID           int    `json:"id"`
	Alias        string `json:"alias"`
	Node         int    `json:"node"`
	Pool         int    `json:"pool,omitempty"`
	Token        string `json:"token,omitempty"`
	Consistency  string `json:"consistency"`
	Reachability string `json:"reachability"`
	// Capacity is Normal, Low or Emergency.
	Capacity string `json:"capacity"`
	Space    *Space `json:"space,omitempty"`
	// LastContact is the age of its server's last report in seconds, or negative if there is none.
	LastContact int64 `json:"lastContact"`
	UID         int   `json:"uid"`
}

// Pool is a storage pool.
type Pool struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	UID  int    `json:"uid"`
}

// Group is a pair of targets with the same data. Pool is 0 for groups of metadata servers.
type Group struct {
	Type      string `json:"type"`
	ID        int    `json:"id"`
	Alias     string `json:"alias"`
	Primary   int    `json:"primary"`
	Secondary int    `json:"secondary"`
	Pool      int    `json:"pool,omitempty"`
	UID       int    `json:"uid"`
}

// NodeView is a server in the management service's state.
type NodeView struct {
	Node
	UID int `json:"uid"`
}

// View is the management service's whole state.
type View struct {
	FsUUID  string       `json:"fsUUID"`
	Nodes   []NodeView   `json:"nodes"`
	Targets []TargetView `json:"targets"`
	Pools   []Pool       `json:"pools"`
	Groups  []Group      `json:"groups"`
	// Root is the metadata server that owns the root directory, or 0 before one has registered.
	Root         int  `json:"root"`
	RootMirrored bool `json:"rootMirrored,omitempty"`
	// License is true if licensed features work (8); LicenseText is the service's message about it.
	License     bool   `json:"license,omitempty"`
	LicenseText string `json:"licenseText,omitempty"`
}

// Node finds a server by type and id.
func (v *View) Node(kind string, id int) *NodeView {
	for i := range v.Nodes {
		if v.Nodes[i].Type == kind && v.Nodes[i].ID == id {
			return &v.Nodes[i]
		}
	}
	return nil
}

// Target finds a target by type and id.
func (v *View) Target(kind string, id int) *TargetView {
	for i := range v.Targets {
		if v.Targets[i].Type == kind && v.Targets[i].ID == id {
			return &v.Targets[i]
		}
	}
	return nil
}

// Pool finds a storage pool by its id.
func (v *View) Pool(id int) *Pool {
	for i := range v.Pools {
		if v.Pools[i].ID == id {
			return &v.Pools[i]
		}
	}
	return nil
}

// GroupOf finds the buddy group that a target is in.
func (v *View) GroupOf(kind string, target int) *Group {
	for i := range v.Groups {
		if g := &v.Groups[i]; g.Type == kind && (g.Primary == target || g.Secondary == target) {
			return g
		}
	}
	return nil
}

// Group finds a buddy group by type and id.
func (v *View) Group(kind string, id int) *Group {
	for i := range v.Groups {
		if g := &v.Groups[i]; g.Type == kind && g.ID == id {
			return g
		}
	}
	return nil
}

// Change is an administrator's request to the management service; each operation uses the fields that it needs.
type Change struct {
	Type      string `json:"type,omitempty"`
	ID        int    `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Targets   []int  `json:"targets,omitempty"`
	Groups    []int  `json:"groups,omitempty"`
	Away      []int  `json:"away,omitempty"`
	Primary   int    `json:"primary,omitempty"`
	Secondary int    `json:"secondary,omitempty"`
	State     string `json:"state,omitempty"`
	// Execute is false for a dry run (8).
	Execute bool `json:"execute,omitempty"`
}

// Changed is the answer to a Change. Complete is false if a part of it could not be done (7).
type Changed struct {
	ID       int    `json:"id"`
	Name     string `json:"name"`
	UID      int    `json:"uid"`
	Complete bool   `json:"complete"`
}
