package cli

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// The questions to a BeeGFS 7.4, by place.
const (
	askManagement7 = iota
	askMeta7
	askStorage7
	askClients7
	askMetaTargets7
	askStorageTargets7
	askPools7
	askMetaGroups7
	askStorageGroups7
	askRoot7
	askMetaSpace7
	askStorageSpace7
)

// questions7 queries BeeGFS 7.4 with beegfs-ctl. It reads ClientConfig and the files that it names, and needs there: sysMgmtdHost,
// connMgmtdPortTCP, connMgmtdPortUDP and connAuthFile. It refuses every option that beegfs-client 7.4 does not have. logEnabled and
// runDaemonized, which only beegfs-ctl has, must stay false: its log goes to the standard output. Its notice on the license goes to the
// standard error.
//
// Without a management service, beegfs-ctl stops after 3 s with exit code 3. So the first question fails, and the others are not asked. The
// questions for targets have no --spaceinfo: that option queries every server, and fails when one is away.
func questions7() []question {
	ctl := func(args ...string) []string {
		return slices.Concat([]string{programCtl}, args, []string{"--cfgFile=" + ClientConfig})
	}
	nodes := func(nodeType string) question {
		return question{argv: ctl("--listnodes", "--nodetype="+nodeType, "--nicdetails")}
	}
	space := func(nodeType string) question {
		return question{argv: ctl("--listtargets", "--nodetype="+nodeType, "--spaceinfo"), limit: serverLimit, forgive: always}
	}
	return []question{
		askManagement7: nodes("management"),
		askMeta7:       nodes("meta"),
		askStorage7:    nodes("storage"),
		askClients7:    nodes("client"),
		// It fails while there is no metadata server; the check against askMeta7 ensures that it lists all of them.
		askMetaTargets7:    {argv: ctl("--listtargets", "--nodetype=meta", "--state", "--pools"), forgive: exited},
		askStorageTargets7: {argv: ctl("--listtargets", "--nodetype=storage", "--state", "--storagepools", "--pools")},
		askPools7:          {argv: ctl("--liststoragepools")},
		askMetaGroups7:     {argv: ctl("--listmirrorgroups", "--nodetype=meta")},
		askStorageGroups7:  {argv: ctl("--listmirrorgroups", "--nodetype=storage")},
		// It prints the owner before it queries the server of the root directory.
		askRoot7:         {argv: ctl("--getentryinfo", "--unmounted", "/"), limit: serverLimit, forgive: always},
		askMetaSpace7:    space("meta"),
		askStorageSpace7: space("storage"),
	}
}

// exited forgives a command that ended by itself with an error.
func exited(code int, _ string) bool { return code > 0 }

// asked7 holds the numbers of the questions for metadata servers, or of those for storage servers.
type asked7 struct {
	role                            v1alpha1.Role
	servers, targets, groups, space int
}

var roles7 = []asked7{
	{v1alpha1.RoleMetadata, askMeta7, askMetaTargets7, askMetaGroups7, askMetaSpace7},
	{v1alpha1.RoleStorage, askStorage7, askStorageTargets7, askStorageGroups7, askStorageSpace7},
}

// parse7 reads the answers of beegfs-ctl 7.4.6.
func parse7(a answers) (backend.State, error) {
	var f facts
	management, _, err := nodes7(a.lines(askManagement7), v1alpha1.RoleManagement)
	if err != nil {
		return backend.State{}, err
	}
	clients, _, err := nodes7(a.lines(askClients7), "")
	if err != nil {
		return backend.State{}, err
	}
	for _, c := range clients {
		f.clients = append(f.clients, backend.Session{IP: c.IP, Connected: true, Transport: c.Transport})
	}
	f.servers = management
	if f.pools, err = pools7(a.lines(askPools7)); err != nil {
		return backend.State{}, err
	}
	for _, asked := range roles7 {
		if err := f.role7(a, asked); err != nil {
			return backend.State{}, err
		}
	}
	// The list of metadata targets may come from a command that failed.
	targets, servers := f.numbers(v1alpha1.RoleMetadata)
	if err := cmp.Or(same("metadata servers", servers, "metadata targets", targets), f.root7(a)); err != nil {
		return backend.State{}, err
	}
	return f.state()
}

// role7 reads all answers about metadata servers, or about storage servers.
func (f *facts) role7(a answers, asked asked7) error {
	servers, root, err := nodes7(a.lines(asked.servers), asked.role)
	if err != nil {
		return err
	}
	targets, err := targets7(a.lines(asked.targets), asked.role)
	if err != nil {
		return err
	}
	mirrors, err := groups7(a.lines(asked.groups), asked.role)
	if err != nil {
		return err
	}
	if err := space7(a.forgiven(asked.space), targets); err != nil {
		return err
	}
	f.servers, f.targets, f.mirrors = append(f.servers, servers...), append(f.targets, targets...), append(f.mirrors, mirrors...)
	if asked.role == v1alpha1.RoleMetadata {
		f.rootID = root
	}
	return nil
}

// The lines of --listnodes --nicdetails (ModeGetNodes.cpp, 7.4.6).
var (
	nodeLine  = regexp.MustCompile(`^(\S.*) \[ID: ([0-9]+)\]$`)
	portsLine = regexp.MustCompile(`^   Ports: UDP: [0-9]+; TCP: ([0-9]+)$`)
	nicLine   = regexp.MustCompile(`^   \+ \S.*\[ip addr: ([0-9.]+); type: (TCP|SDP|RDMA|Unknown)\]$`)
	countLine = regexp.MustCompile(`^Number of nodes: ([0-9]+)$`)
	rootLine  = regexp.MustCompile(`^Root: ([0-9]+)$`)
)

// typeRDMA7 is an interface with RDMA (NetworkInterfaceCard::nicTypeToString, 7.4.6).
const typeRDMA7 = "RDMA"

// nodes7 reads servers, or clients: for each its name and number, its ports, and its interfaces with the preferred one first. After an
// empty line come their count and, for metadata servers, the owner of the root directory.
func nodes7(r *reader, role v1alpha1.Role) (servers []backend.Server, root int32, err error) {
	for r.next() && r.text != "" {
		s, err := node7(r, role)
		if err != nil {
			return nil, 0, err
		}
		if slices.ContainsFunc(servers, func(other backend.Server) bool { return other.ID == s.ID }) {
			return nil, 0, r.wrong("ends a node whose number was listed before")
		}
		servers = append(servers, s)
	}
	if !r.next() {
		return nil, 0, r.short("the number of nodes")
	}
	count := countLine.FindStringSubmatch(r.text)
	if len(count) == 0 || count[1] != strconv.Itoa(len(servers)) {
		return nil, 0, r.wrong("should be the number of nodes, %d", len(servers))
	}
	for r.next() {
		owner := rootLine.FindStringSubmatch(r.text)
		if owner == nil || root != 0 {
			return nil, 0, r.wrong("is not known")
		}
		if root, err = r.id(owner[1]); err != nil {
			return nil, 0, err
		}
	}
	return servers, root, r.err
}

// node7 reads a node from its first line. For a node without an interface, BeeGFS prints an empty line instead.
func node7(r *reader, role v1alpha1.Role) (backend.Server, error) {
	node := nodeLine.FindStringSubmatch(r.text)
	if node == nil {
		return backend.Server{}, r.wrong("should be the name and the number of a node")
	}
	id, err := r.id(node[2])
	if err != nil {
		return backend.Server{}, err
	}
	s := backend.Server{Role: role, ID: id, Name: node[1]}
	if !r.next() {
		return s, r.short("the ports of " + s.Name)
	}
	ports := portsLine.FindStringSubmatch(r.text)
	if ports == nil {
		return s, r.wrong("should be the ports of %s", s.Name)
	}
	port, err := strconv.ParseUint(ports[1], 10, 16)
	if err != nil {
		return s, r.wrong("has no port")
	}
	s.Port = int32(port)
	if !r.next() {
		return s, r.short("the interfaces of " + s.Name)
	}
	if strings.TrimRight(r.text, " ") != "   Interfaces:" {
		return s, r.wrong("should announce the interfaces of %s", s.Name)
	}
	err = nics7(r, &s)
	return s, err
}

// nics7 reads the address of the first interface, and whether there is one with RDMA. Interfaces with RDMA are listed a second time with
// the same address.
func nics7(r *reader, s *backend.Server) error {
	if !r.next() {
		return r.short("an interface of " + s.Name)
	}
	if r.text == "" {
		return nil
	}
	for {
		nic := nicLine.FindStringSubmatch(r.text)
		if nic == nil {
			return r.wrong("should be an interface of %s", s.Name)
		}
		if s.IP == "" {
			s.IP, s.Transport = nic[1], backend.TransportTCP
		}
		if nic[2] == typeRDMA7 {
			s.Transport = backend.TransportRDMA
		}
		if !strings.HasPrefix(string(r.rest), "   + ") {
			return r.err
		}
		r.next()
	}
}

// targets7 reads the table of --listtargets (ModeListTargets.cpp, 7.4.6), which for storage targets has the storage pool too. If the
// management service has no state of a target, one word replaces both columns.
func targets7(r *reader, role v1alpha1.Role) ([]backend.Target, error) {
	header, columns := "TargetID Reachability Consistency Cap. Pool NodeID", 5
	if role == v1alpha1.RoleStorage {
		header, columns = "TargetID Reachability Consistency St. Pool Cap. Pool NodeID", 6
	}
	if err := r.table(header); err != nil {
		return nil, err
	}
	var targets []backend.Target
	for r.next() {
		row := strings.Fields(r.text)
		if len(row) == columns-1 && row[1] == unknownState7 {
			row = slices.Insert(row, 2, unknownState7)
		}
		if len(row) != columns {
			return nil, r.wrong("should have %d columns", columns)
		}
		t, err := target7(r, row, role)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, r.err
}

// unknownState7 is printed for a target whose state the management service does not have.
const unknownState7 = "<invalid_value>"

// The words of beegfs-ctl 7.4.6, and the words of version 8 for the same states.
var (
	reachability7 = map[string]string{Reachable: Reachable, unsure: unsure, Unreachable: Unreachable, unknownState7: "Unknown"}
	consistency7  = map[string]string{Good: Good, Bad: Bad, Behind: Behind, "resyncing": Behind, unknownState7: ""}
	capacity7     = map[string]string{"normal": "Normal", "low": "Low", "emergency": "Emergency", "unknown": ""}
)

func target7(r *reader, row []string, role v1alpha1.Role) (backend.Target, error) {
	last := len(row) - 1
	id, err := r.id(row[0])
	if err != nil {
		return backend.Target{}, err
	}
	server, err := r.id(row[last])
	if err != nil {
		return backend.Target{}, err
	}
	status, known1 := reachability7[row[1]]
	consistency, known2 := consistency7[row[2]]
	capacity, known3 := capacity7[row[last-1]]
	if !known1 || !known2 || !known3 {
		return backend.Target{}, r.wrong("has a state that is not known")
	}
	t := backend.Target{
		Role: role, ID: id, ServerID: server, Status: status, Online: status == Reachable, Consistency: consistency, CapacityPool: capacity,
	}
	if role == v1alpha1.RoleStorage {
		if t.PoolID, err = r.id(row[3]); err != nil {
			return backend.Target{}, err
		}
	}
	return t, nil
}

// table reads the two lines above a table: the column names, and the line below them.
func (r *reader) table(header string) error {
	if !r.next() {
		return r.short("the columns of its table")
	}
	if strings.Join(strings.Fields(r.text), " ") != header {
		return r.wrong("should be the columns %q", header)
	}
	if !r.next() {
		return r.short("the line below the columns")
	}
	if strings.Trim(r.text, "= ") != "" || r.text == "" {
		return r.wrong("should underline the columns")
	}
	return nil
}

// id reads a number that BeeGFS gave.
func (r *reader) id(text string) (int32, error) {
	id, ok := identifier(text)
	if !ok {
		return 0, r.wrong("has %s in the place of a number that BeeGFS gives", quote(text))
	}
	return id, nil
}

// The columns of --liststoragepools (ModeListStoragePools.cpp, 7.4.6). A longer name moves the rest of the line, so that the columns are
// found by the space between the first column and the last two.
const (
	poolIDWidth   = 7
	poolNameWidth = 18
	poolListWidth = 28
)

// pools7 reads the storage pools. A list that is longer than its column continues in the next line, and then ends in a comma.
func pools7(r *reader) ([]backend.Pool, error) {
	if err := r.table("Pool ID Pool Description Targets Buddy Groups"); err != nil {
		return nil, err
	}
	var pools []backend.Pool
	open := false
	for r.next() {
		first, targets, mirrors, ok := poolRow(r.text)
		if !ok {
			return nil, r.wrong("is too short for a storage pool")
		}
		id, name := strings.TrimSpace(first[:poolIDWidth]), strings.TrimSpace(first[poolIDWidth:])
		if (id == "") != open || (name == "") != open {
			return nil, r.wrong("should %s", map[bool]string{true: "go on with the pool above", false: "be another storage pool"}[open])
		}
		if !open {
			n, err := r.id(id)
			if err != nil {
				return nil, err
			}
			pools = append(pools, backend.Pool{ID: n, Name: name})
		}
		pool := &pools[len(pools)-1]
		more1, err1 := r.numbers(targets, &pool.Targets)
		more2, err2 := r.numbers(mirrors, &pool.Mirrors)
		if err := cmp.Or(err1, err2); err != nil {
			return nil, err
		}
		open = more1 || more2
	}
	if open || len(pools) == 0 {
		return nil, r.short("the last storage pool")
	}
	return pools, r.err
}

// poolRow cuts a line into the part before the lists, and the lists.
func poolRow(line string) (first, targets, mirrors string, ok bool) {
	lists := len(line) - 2*poolListWidth - 1
	if lists < poolIDWidth+1+poolNameWidth+1 || line[lists-1] != ' ' || line[lists+poolListWidth] != ' ' {
		return "", "", "", false
	}
	return line[:lists], line[lists : lists+poolListWidth], line[lists+poolListWidth+1:], true
}

// numbers appends the numbers of a list; more is true when the list continues in the next line.
func (r *reader) numbers(list string, to *[]int32) (more bool, err error) {
	list = strings.TrimRight(list, " ")
	if list == "" {
		return false, nil
	}
	list, more = strings.CutSuffix(list, ",")
	for text := range strings.SplitSeq(list, ",") {
		id, err := r.id(text)
		if err != nil {
			return false, err
		}
		*to = append(*to, id)
	}
	return more, nil
}

// groups7 reads the buddy groups (ModeListMirrorBuddyGroups.cpp, 7.4.6). If there is no group, only the standard error has a message.
func groups7(r *reader, role v1alpha1.Role) ([]backend.Mirror, error) {
	if len(r.rest) == 0 {
		return nil, nil
	}
	header := "BuddyGroupID PrimaryNodeID SecondaryNodeID"
	if role == v1alpha1.RoleStorage {
		header = "BuddyGroupID PrimaryTargetID SecondaryTargetID"
	}
	if err := r.table(header); err != nil {
		return nil, err
	}
	var mirrors []backend.Mirror
	for r.next() {
		row := strings.Fields(r.text)
		if len(row) != 3 {
			return nil, r.wrong("should have 3 columns")
		}
		m := backend.Mirror{Role: role}
		for i, to := range []*int32{&m.ID, &m.Primary, &m.Secondary} {
			id, err := r.id(row[i])
			if err != nil {
				return nil, err
			}
			*to = id
		}
		mirrors = append(mirrors, m)
	}
	if r.err == nil && len(mirrors) == 0 {
		return nil, r.short("a buddy group")
	}
	return mirrors, r.err
}

// root7 reads from --getentryinfo whether the root directory is mirrored (ModeGetEntryInfo.cpp, 7.4.6). The management service has this
// fact, so a missing answer is an error. The exception is a filesystem without a buddy group of metadata servers, which can't be mirrored.
func (f *facts) root7(a answers) error {
	r := a.forgiven(askRoot7)
	for r.next() {
		switch {
		case strings.HasPrefix(r.text, "Metadata buddy group: "):
			f.mirrored = new(true)
		case strings.HasPrefix(r.text, "Metadata node: "):
			f.mirrored = new(false)
		}
	}
	groups := slices.ContainsFunc(f.mirrors, func(m backend.Mirror) bool { return m.Role == v1alpha1.RoleMetadata })
	if f.mirrored == nil && groups {
		return fmt.Errorf("%s: it did not say whether the root directory is mirrored", r.name)
	}
	return nil
}

// space7 reads the sizes of the targets of servers that answered, in tenths of a GiB. A server that did not answer has sizes of 0.0GiB in
// the table, and an error of its own beside it (addSpaceToLine of ModeListTargets.cpp, 7.4.6). The sizes of its targets stay unchanged.
func space7(r *reader, targets []backend.Target) error {
	if len(r.rest) == 0 {
		return nil
	}
	if err := r.table("TargetID Total Free % ITotal IFree % NodeID"); err != nil {
		return err
	}
	for r.next() {
		row := strings.Fields(r.text)
		if len(row) != 8 {
			return r.wrong("should have 8 columns")
		}
		id, err := r.id(row[0])
		if err != nil {
			return err
		}
		total, ok1 := gibibytes(row[1])
		free, ok2 := gibibytes(row[2])
		if !ok1 || !ok2 || free > total {
			return r.wrong("has sizes that are none")
		}
		inodes, ok1 := millions(row[4])
		freeInodes, ok2 := millions(row[5])
		if !ok1 || !ok2 || freeInodes > inodes {
			return r.wrong("has numbers of inodes that are none")
		}
		for i := range targets {
			if targets[i].ID == id && total > 0 {
				targets[i].CapacityBytes, targets[i].UsedBytes, targets[i].Contacted = total, total-free, true
				// BeeGFS rounds the numbers to a tenth of a million; inodes that may be free count as free.
				targets[i].Inodes, targets[i].UsedInodes = inodes, max(inodes-freeInodes-tenthOfMillion, 0)
			}
		}
	}
	return r.err
}

// tenthOfMillion is the step of the numbers of inodes in the table.
const tenthOfMillion = 100_000

// millions reads a number such as "16.8M".
func millions(text string) (int64, bool) {
	number, ok := strings.CutSuffix(text, "M")
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || math.IsNaN(n) || n < 0 || n > 1<<32 {
		return 0, false
	}
	return int64(math.Round(n*10)) * tenthOfMillion, true
}

// gibibytes reads a size such as "252.0GiB".
func gibibytes(text string) (int64, bool) {
	number, ok := strings.CutSuffix(text, "GiB")
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || math.IsNaN(n) || n < 0 || n > 1<<32 {
		return 0, false
	}
	return int64(math.Round(n * (1 << 30))), true
}
