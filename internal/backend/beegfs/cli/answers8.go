package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// The questions to a BeeGFS 8, by place.
const (
	askNodes8 = iota
	askTargets8
	askPools8
	askMirrors8
	askLicense8
	askRoot8
)

// questions8 queries with the tool beegfs of 8.0 to 8.4. It names the columns that are read here, so that a later version may have more.
// All but the last question query only the management service, which has the states and sizes of all targets.
//
// The tool insists on root (it is asked without a mount), needs no capability and writes nothing.
func questions8(address string) []question {
	base := append([]string{"--raw"}, connection8(address)...)
	ask := func(output, columns string, args ...string) []string {
		argv := slices.Concat([]string{programTool}, args, []string{"--mount=none", "--output=" + output}, base)
		if columns != "" {
			argv = append(argv, "--columns="+columns)
		}
		return argv
	}
	return []question{
		askNodes8:   {argv: ask("ndjson", "id,alias,nics", "node", "list", "--with-nics"), forgive: unverified},
		askTargets8: {argv: ask("ndjson", targetColumns8, "target", "list", "--state", "--capacity"), forgive: unverified},
		askPools8:   {argv: ask("ndjson", "id,alias,targets,mirrors", "pool", "list"), forgive: unverified},
		askMirrors8: {argv: ask("ndjson", "id,primary_target,secondary_target", "mirror", "list"), forgive: noMirrors},
		askLicense8: {argv: ask("json", "", "license"), forgive: unlicensed},
		askRoot8: {
			argv:  ask("ndjson", "entry_id,meta_node,meta_mirror", "entry", "info", "/"),
			limit: serverLimit, forgive: always,
		},
	}
}

// targetColumns8 are the columns of internal/cmd/target/list.go. They have had these names since 8.0.0, and have them in 8.4.0.
const targetColumns8 = "id,node,storage_pool,reachability,consistency,cap_pool,space,space_free,inodes,inodes_free"

// refused is true for an error of the connection: the management service did not answer, or rejected this tool (codes of gRPC).
func refused(code int, stderr string) bool {
	return code != 1 || !strings.HasPrefix(stderr, "Error: ") || slices.ContainsFunc(
		[]string{"Unavailable", "DeadlineExceeded", "Canceled", "Unauthenticated", "PermissionDenied"},
		func(code string) bool { return strings.Contains(stderr, "code = "+code) },
	)
}

// unverified forgives an error of 8.0 to 8.3 after the whole answer was printed: the tools then query the license, and fail if the
// management service runs without the library that verifies it.
func unverified(code int, stderr string) bool {
	return !refused(code, stderr) && strings.HasPrefix(stderr, "Error: unable to verify licensed status: ")
}

// noMirrors forgives the question for buddy groups, which fails when there is none.
func noMirrors(code int, stderr string) bool {
	return unverified(code, stderr) || !refused(code, stderr) && strings.HasPrefix(stderr, "Error: no mirrors configured")
}

// unlicensed forgives the question for the license, which fails when there is none.
func unlicensed(code int, stderr string) bool { return !refused(code, stderr) }

// parse8 reads the answers of the tool beegfs 8.3.1.
func parse8(a answers) (backend.State, error) {
	var f facts
	for _, read := range []func(answers) error{f.nodes8, f.targets8, f.pools8, f.mirrors8, f.root8} {
		if err := read(a); err != nil {
			return backend.State{}, err
		}
	}
	var err error
	if f.license, err = license8(a.forgiven(askLicense8)); err != nil {
		return backend.State{}, err
	}
	return f.state()
}

// id8 is the number of a server, a target, a group or a pool of a type.
type id8 struct {
	Number *int64 `json:"num_id"`
	Type   *int   `json:"node_type"`
}

// The types of nodes (common/beegfs/nodetype.go, 8.3.1).
const (
	typeClient8     = 1
	typeMeta8       = 2
	typeStorage8    = 3
	typeManagement8 = 4
)

var (
	// roles8 and prefix8 are the tool's names for metadata and storage servers.
	roles8 = map[int]v1alpha1.Role{
		typeMeta8: v1alpha1.RoleMetadata, typeStorage8: v1alpha1.RoleStorage, typeManagement8: v1alpha1.RoleManagement,
	}
	prefix8 = map[v1alpha1.Role]string{v1alpha1.RoleMetadata: "m:", v1alpha1.RoleStorage: "s:"}
)

// unmapped8 replaces the server of a target that has none.
const unmapped8 = "<unmapped>"

func (i id8) read(r *reader) (v1alpha1.Role, int32, error) {
	if i.Number == nil || i.Type == nil || roles8[*i.Type] == "" {
		return "", 0, r.wrong("has no id that is known")
	}
	id, err := r.id(strconv.FormatInt(*i.Number, 10))
	return roles8[*i.Type], id, err
}

// row decodes the last line read as an object with exactly these fields.
func (r *reader) row(to any) error {
	decoder := json.NewDecoder(strings.NewReader(r.text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(to); err != nil {
		return r.wrong("can't be read (%s)", err)
	}
	if decoder.More() {
		return r.wrong("is more than one object")
	}
	return nil
}

// number8 reads "m:1" or "s:1" of a role.
func (r *reader) number8(text string, role v1alpha1.Role) (int32, error) {
	number, ok := strings.CutPrefix(text, prefix8[role])
	if !ok || prefix8[role] == "" {
		return 0, r.wrong("has %s in the place of a number of its own kind", quote(text))
	}
	return r.id(number)
}

// numbers8 reads a list such as "s:101,s:102", or nothing.
func (r *reader) numbers8(list string) ([]int32, error) {
	if list == "" {
		return nil, nil
	}
	var out []int32
	for text := range strings.SplitSeq(list, ",") {
		id, err := r.number8(text, v1alpha1.RoleStorage)
		if err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	slices.Sort(out)
	return out, nil
}

// nodes8 reads servers and clients (node/list.go).
func (f *facts) nodes8(a answers) error {
	r := a.lines(askNodes8)
	for r.next() {
		var row struct {
			ID    id8     `json:"id"`
			Alias *string `json:"alias"`
			Nics  *string `json:"nics"`
		}
		if err := r.row(&row); err != nil {
			return err
		}
		if row.Alias == nil || row.Nics == nil || row.ID.Type == nil {
			return r.wrong("has not all columns that were asked for")
		}
		s := backend.Server{Name: *row.Alias}
		if err := address8(r, *row.Nics, &s); err != nil {
			return err
		}
		if *row.ID.Type == typeClient8 {
			f.clients = append(f.clients, backend.Session{IP: s.IP, Connected: true, Transport: s.Transport})
			continue
		}
		var err error
		if s.Role, s.ID, err = row.ID.read(r); err != nil {
			return err
		}
		f.servers = append(f.servers, s)
	}
	if r.err == nil && !slices.ContainsFunc(f.servers, func(s backend.Server) bool { return s.Role == v1alpha1.RoleManagement }) {
		return r.short("the management service")
	}
	return r.err
}

// address8 reads the address of the first interface from lines such as "ethernet:eth0 (10.0.0.1:8005)". For the management service, the
// port of its gRPC follows its own.
func address8(r *reader, nics string, s *backend.Server) error {
	first, _, _ := strings.Cut(nics, "\n")
	if first == "" {
		return nil
	}
	from, to := strings.LastIndex(first, " ("), len(first)-1
	if from < 0 || first[to] != ')' {
		return r.wrong("has no address of an interface")
	}
	text, _, _ := strings.Cut(first[from+2:to], ",")
	address, err := netip.ParseAddrPort(text)
	if err != nil {
		return r.wrong("has no address of an interface")
	}
	s.IP, s.Port = address.Addr().String(), int32(address.Port())
	s.Transport = backend.TransportTCP
	for nic := range strings.SplitSeq(nics, "\n") {
		if strings.HasPrefix(nic, typeRDMA8) {
			s.Transport = backend.TransportRDMA
		}
	}
	return nil
}

// typeRDMA8 begins the line of an interface with RDMA. Other interfaces begin with ethernet before version 8.4, and with tcp since
// (common/beegfs, NicType).
const typeRDMA8 = "rdma:"

// targets8 reads the targets (target/list.go).
func (f *facts) targets8(a answers) error {
	r := a.lines(askTargets8)
	for r.next() {
		var row target8
		if err := r.row(&row); err != nil {
			return err
		}
		t, err := row.read(r)
		if err != nil {
			return err
		}
		f.targets = append(f.targets, t)
	}
	return r.err
}

type target8 struct {
	ID           id8     `json:"id"`
	Node         *string `json:"node"`
	Pool         *string `json:"storage_pool"`
	Reachability *string `json:"reachability"`
	Consistency  *string `json:"consistency"`
	Capacity     *string `json:"cap_pool"`
	Space        *string `json:"space"`
	Free         *string `json:"space_free"`
	Inodes       *string `json:"inodes"`
	FreeInodes   *string `json:"inodes_free"`
}

// The words of version 8 (pkg/ctl/target/list.go); the empty word is an unknown state, such as that of a target without a server.
var (
	reachability8 = []string{Reachable, unsure, Unreachable}
	consistency8  = []string{Good, Behind, Bad}
	capacity8     = []string{"", "Normal", "Low", "Emergency"}
)

func (row target8) read(r *reader) (backend.Target, error) {
	if row.Node == nil || row.Pool == nil || row.Reachability == nil || row.Consistency == nil || row.Capacity == nil ||
		row.Space == nil || row.Free == nil || row.Inodes == nil || row.FreeInodes == nil {
		return backend.Target{}, r.wrong("has not all columns that were asked for")
	}
	if !slices.Contains(reachability8, *row.Reachability) || !slices.Contains(consistency8, *row.Consistency) ||
		!slices.Contains(capacity8, *row.Capacity) {
		return backend.Target{}, r.wrong("has a state that is not known")
	}
	t := backend.Target{
		Status: *row.Reachability, Online: *row.Reachability == Reachable, Consistency: *row.Consistency, CapacityPool: *row.Capacity,
	}
	var err error
	if t.Role, t.ID, err = row.ID.read(r); err != nil {
		return t, err
	}
	if *row.Node != unmapped8 {
		if t.ServerID, err = r.number8(*row.Node, t.Role); err != nil {
			return t, err
		}
	}
	if t.Role == v1alpha1.RoleStorage {
		if t.PoolID, err = r.number8(*row.Pool, t.Role); err != nil {
			return t, err
		}
	}
	err = row.sizes(r, &t)
	return t, err
}

// sizes reads bytes and numbers of inodes; all four are unknown until the target's server has reported them.
func (row target8) sizes(r *reader, t *backend.Target) (err error) {
	if t.UsedBytes, t.CapacityBytes, err = r.used8(*row.Space, *row.Free, "sizes"); err != nil {
		return err
	}
	t.UsedInodes, t.Inodes, err = r.used8(*row.Inodes, *row.FreeInodes, "numbers of inodes")
	return err
}

// used8 returns the used and the total amount, or 0 for "-", which means unknown.
func (r *reader) used8(all, free, what string) (used, total int64, err error) {
	if all == "-" || free == "-" {
		return 0, 0, nil
	}
	n, err1 := strconv.ParseInt(all, 10, 64)
	left, err2 := strconv.ParseInt(free, 10, 64)
	if err1 != nil || err2 != nil || left < 0 || left > n {
		return 0, 0, r.wrong("has %s that are none", what)
	}
	return n - left, n, nil
}

// pools8 reads the storage pools (pool/list.go); the default pool always exists.
func (f *facts) pools8(a answers) error {
	r := a.lines(askPools8)
	for r.next() {
		var row struct {
			ID      id8     `json:"id"`
			Alias   *string `json:"alias"`
			Targets *string `json:"targets"`
			Mirrors *string `json:"mirrors"`
		}
		if err := r.row(&row); err != nil {
			return err
		}
		if row.Alias == nil || row.Targets == nil || row.Mirrors == nil {
			return r.wrong("has not all columns that were asked for")
		}
		_, id, err := row.ID.read(r)
		if err != nil {
			return err
		}
		pool := backend.Pool{ID: id, Name: *row.Alias}
		if pool.Targets, err = r.numbers8(*row.Targets); err != nil {
			return err
		}
		if pool.Mirrors, err = r.numbers8(*row.Mirrors); err != nil {
			return err
		}
		f.pools = append(f.pools, pool)
	}
	if r.err == nil && len(f.pools) == 0 {
		return r.short("a storage pool")
	}
	return r.err
}

// mirrors8 reads the buddy groups (buddygroup/list.go).
func (f *facts) mirrors8(a answers) error {
	r := a.lines(askMirrors8)
	for r.next() {
		var row struct {
			ID        id8     `json:"id"`
			Primary   *string `json:"primary_target"`
			Secondary *string `json:"secondary_target"`
		}
		if err := r.row(&row); err != nil {
			return err
		}
		if row.Primary == nil || row.Secondary == nil {
			return r.wrong("has not all columns that were asked for")
		}
		var m backend.Mirror
		var err error
		if m.Role, m.ID, err = row.ID.read(r); err != nil {
			return err
		}
		if m.Primary, err = r.number8(*row.Primary, m.Role); err != nil {
			return err
		}
		if m.Secondary, err = r.number8(*row.Secondary, m.Role); err != nil {
			return err
		}
		f.mirrors = append(f.mirrors, m)
	}
	return r.err
}

// root8 reads the owner of the root directory (entry/info.go): a metadata server, or a buddy group of two. Only that server can answer;
// while it is away, the owner is unknown, and the other answers stay valid.
func (f *facts) root8(a answers) error {
	r := a.forgiven(askRoot8)
	for r.next() {
		var row struct {
			ID     *string         `json:"entry_id"`
			Node   *string         `json:"meta_node"`
			Mirror json.RawMessage `json:"meta_mirror"`
		}
		if err := r.row(&row); err != nil {
			return err
		}
		if row.ID == nil || *row.ID != "root" || row.Node == nil || f.mirrored != nil {
			return r.wrong("should be about the root directory")
		}
		var err error
		if bytes.Equal(row.Mirror, []byte(`"(unmirrored)"`)) {
			f.mirrored = new(false)
			f.rootID, err = r.number8(*row.Node, v1alpha1.RoleMetadata)
		} else {
			f.mirrored = new(true)
			f.rootID, err = r.group8(row.Mirror)
		}
		if err != nil {
			return err
		}
	}
	return r.err
}

func (r *reader) group8(raw json.RawMessage) (int32, error) {
	var group id8
	if err := json.Unmarshal(raw, &group); err != nil {
		return 0, r.wrong("does not say whether the root directory is mirrored")
	}
	role, id, err := group.read(r)
	if err == nil && role != v1alpha1.RoleMetadata {
		return 0, r.wrong("has a buddy group that is none of metadata servers")
	}
	return id, err
}

// license8 reads the license (license/license.go). If no license is loaded, the tool fails, and may print how to get one. A license that is
// not valid comes with a message that has the reason.
func license8(r *reader) (*backend.License, error) {
	if !strings.HasPrefix(string(r.rest), "{") {
		return &backend.License{Message: "BeeGFS has no license loaded"}, nil
	}
	var answer struct {
		Result *int `json:"result"`
		Data   struct {
			Names []string `json:"dns_names"`
		} `json:"data"`
		Message string `json:"message"`
	}
	if !r.next() {
		return nil, r.short("the license")
	}
	if err := json.Unmarshal([]byte(r.text), &answer); err != nil || answer.Result == nil {
		return nil, fmt.Errorf("%s: can't read its answer: %s", r.name, quote(r.text))
	}
	return &backend.License{
		Valid:    answer.Message == "" && len(answer.Data.Names) > 0,
		Features: slices.Sorted(slices.Values(answer.Data.Names)), Message: answer.Message,
	}, r.err
}
