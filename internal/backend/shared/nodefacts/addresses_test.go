package nodefacts_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/plan"
)

func TestANodesAddressIsTheFirstOfAFamilyThatTheFilesystemHas(t *testing.T) {
	ipv4, both := []corev1.IPFamily{corev1.IPv4Protocol}, nodefacts.AllFamilies()
	for name, c := range map[string]struct {
		has      []string
		families []corev1.IPFamily
		want     string
	}{
		"the first of two of one family":                       {[]string{"10.0.0.1", "10.0.0.2"}, ipv4, "10.0.0.1"},
		"IPv4, although IPv6 is first":                         {[]string{"fd00::1", "10.0.0.1"}, ipv4, "10.0.0.1"},
		"IPv4 before IPv6, so that an upgrade changes nothing": {[]string{"fd00::1", "10.0.0.1"}, both, "10.0.0.1"},
		"IPv6, where it is all there is":                       {[]string{"fd00::1", "fd00::2"}, both, "fd00::1"},
		"none, where the filesystem has not the family":        {[]string{"fd00::1"}, ipv4, ""},
		"IPv4 in the form of IPv6 is IPv4":                     {[]string{"::ffff:10.0.0.1"}, ipv4, "::ffff:10.0.0.1"},
		"a name is no address":                                 {[]string{"node1", "10.0.0.1"}, both, "10.0.0.1"},
		"none, before the kubelet has reported one":            {nil, both, ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(nodefacts.AddressOf(c.has, c.families)).To(Equal(c.want))
		})
	}
}

func TestNodesGetTheAddressesThatTheirFilesystemCanUse(t *testing.T) {
	g := NewWithT(t)
	four := backend.Node{Name: "n1", InternalIPs: []string{"10.0.0.1"}, IP: "10.0.0.1"}
	six := backend.Node{Name: "n2", InternalIPs: []string{"fd00::2"}, IP: "fd00::2"}
	nodes := []backend.Node{four, six}
	g.Expect(nodefacts.WithAddresses(nodes, nodefacts.AllFamilies())).To(Equal(nodes))
	usable := nodefacts.WithAddresses(nodes, []corev1.IPFamily{corev1.IPv4Protocol})
	g.Expect(usable[0]).To(Equal(four))
	g.Expect(usable[1].IP).To(BeEmpty())
	g.Expect(nodes[1]).To(Equal(six), "the nodes of other filesystems stay as they are")
}

// addressed returns an Input with three nodes: n1 has an IPv4 address, n2 only an IPv6 address, and the kubelet of n3 has not reported an
// address.
func addressed(change func(in *backend.Input)) backend.Input {
	in := backend.Input{
		FileSystem: &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{Type: "Any", Version: "1.0"}},
		Nodes: []backend.Node{
			{Name: "n1", InternalIPs: []string{"10.0.0.1"}, IP: "10.0.0.1"},
			{Name: "n2", InternalIPs: []string{"fd00::2"}, Labels: map[string]string{"client": ""}}, {Name: "n3"},
		},
	}
	if change != nil {
		change(&in)
	}
	return in.Indexed()
}

func TestANodeWithoutAnAddressOfTheFilesystemsFamiliesJoinsNothing(t *testing.T) {
	ipv4 := []corev1.IPFamily{corev1.IPv4Protocol}
	const sentence = "node n2 has no IPv4 InternalIP, only fd00::2, and Any 1.0 has no other addresses; give the node one (kubelet --node-ip), " +
		"or take the labels of this filesystem's nodeSelectors from it"
	for name, a := range map[string]backend.Allocation{
		"for the metadata":               {TargetNodes: plan.TargetNodes{Metadata: []string{"n2"}}},
		"for the management":             {TargetNodes: plan.TargetNodes{Management: []string{"n2"}}},
		"for a storage pool":             {TargetNodes: plan.TargetNodes{Pools: map[string][]string{"ssd": {"n1", "n2", "n3"}}}},
		"for the record of the metadata": {Status: v1alpha1.FileSystemStatus{Metadata: &v1alpha1.MetadataRecord{Node: "n2"}}},
		"for a server":                   {Nodes: []v1alpha1.FileSystemNode{{Spec: v1alpha1.FileSystemNodeSpec{Node: "n2"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := nodefacts.RefuseAddresses(addressed(nil), ipv4, &a)
			g.Expect(err).To(MatchError(sentence))
			g.Expect(err).To(HaveField("Reason", v1alpha1.ReasonNoAddress))
		})
	}
	used := addressed(func(in *backend.Input) {
		in.FileSystemNodes = []v1alpha1.FileSystemNode{{Spec: v1alpha1.FileSystemNodeSpec{Node: "n2"}}}
	})
	all := backend.Allocation{TargetNodes: plan.TargetNodes{Metadata: []string{"n2"}}}
	NewWithT(t).Expect(nodefacts.RefuseAddresses(used, ipv4, &all)).To(Succeed(), "what is recorded stays recorded, and is named by a problem")
}

func TestAProblemNamesTheNodesWithoutAnAddress(t *testing.T) {
	g := NewWithT(t)
	ipv4 := []corev1.IPFamily{corev1.IPv4Protocol}
	g.Expect(nodefacts.AddressProblem(addressed(nil), ipv4)).To(BeNil(), "n2 is no node of the filesystem")
	server := addressed(func(in *backend.Input) {
		in.FileSystemNodes = []v1alpha1.FileSystemNode{{Spec: v1alpha1.FileSystemNodeSpec{Node: "n2"}}, {Spec: v1alpha1.FileSystemNodeSpec{Node: "n3"}}}
	})
	g.Expect(nodefacts.AddressProblem(server, ipv4)).To(HaveValue(Equal(backend.Problem{Reason: v1alpha1.ReasonNoAddress,
		Message: "node n2 has no IPv4 InternalIP, only fd00::2, and Any 1.0 has no other addresses; give the node one (kubelet --node-ip)"})))
	client := addressed(func(in *backend.Input) {
		in.FileSystem.Spec.Clients = &v1alpha1.ClientsSpec{NodeSelector: v1alpha1.NodeSelector{"client": ""}}
		for i := range 9 {
			in.Nodes = append(in.Nodes, backend.Node{
				Name: fmt.Sprintf("w%d", i), InternalIPs: []string{fmt.Sprintf("fd00::1%d", i)}, Labels: map[string]string{"client": ""}})
		}
	})
	g.Expect(nodefacts.AddressProblem(client, ipv4).Message).To(Equal("10 nodes have no address that the filesystem can use: n2, w0, w1 and 7 more; " +
		"for example, node n2 has no IPv4 InternalIP, only fd00::2, and Any 1.0 has no other addresses; give the node one (kubelet --node-ip)"))
}

func TestTheReasonWhyANodeIsGoneIsNamed(t *testing.T) {
	g := NewWithT(t)
	in := addressed(nil)
	g.Expect(in.Gone("n2")).To(Equal("has no address that the filesystem can use (fd00::2)"))
	g.Expect(in.Gone("n3")).To(Equal("has no InternalIP"))
	g.Expect(in.Gone("n4")).To(Equal("is not in the cluster"))
}

func TestAnAddressOfIPv6HasBrackets(t *testing.T) {
	g := NewWithT(t)
	g.Expect(backend.Address("fd00::1", 9421)).To(Equal("[fd00::1]:9421"))
	g.Expect(backend.Address("10.0.0.1", 9421)).To(Equal("10.0.0.1:9421"))
}

// hostAndPort matches a format that puts a number behind a colon, such as a port behind a host.
var hostAndPort = regexp.MustCompile(`%[sv]:%[dv]`)

// TestHostsAndPortsAreJoinedByJoinHostPort finds hosts and ports that are joined by a colon, which lacks the brackets of IPv6.
func TestHostsAndPortsAreJoinedByJoinHostPort(t *testing.T) {
	var found []string
	root := filepath.Join("..", "..", "..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		relative, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (relative == "test" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return filepath.SkipDir // doubles print what the real programs print
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil && joinsByColon(n) {
				found = append(found, fmt.Sprintf("%s, line %d", relative, files.Position(n.Pos()).Line))
			}
			return true
		})
		return nil
	})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeEmpty(), "use net.JoinHostPort or backend.Address")
}

func TestTheRuleOfHostsAndPortsFindsThem(t *testing.T) {
	for text, want := range map[string]bool{
		`host + ":" + strconv.Itoa(port)`:    true,
		`host + ":" + fmt.Sprint(p.clients)`: true,
		`host + ":" + port`:                  true,
		`m.IP + ":9421"`:                     true,
		`fmt.Sprintf("%s:%d", host, port)`:   true,
		`fmt.Sprintf("http://%s:%d/", h, p)`: true,
		`node + ":" + directory`:             false,
		`net.JoinHostPort(host, port)`:       false,
	} {
		expression, err := parser.ParseExpr(text)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		found := false
		ast.Inspect(expression, func(n ast.Node) bool {
			found = found || n != nil && joinsByColon(n)
			return true
		})
		NewWithT(t).Expect(found).To(Equal(want), text)
	}
}

// joinsByColon reports whether an expression puts a port behind a colon.
func joinsByColon(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BasicLit:
		return n.Kind == token.STRING && hostAndPort.MatchString(n.Value)
	case *ast.BinaryExpr:
		left, adds := n.X.(*ast.BinaryExpr)
		if n.Op != token.ADD {
			return false
		}
		if literal, ok := n.Y.(*ast.BasicLit); ok && regexp.MustCompile(`^":\d+"$`).MatchString(literal.Value) {
			return true
		}
		if !adds || left.Op != token.ADD {
			return false
		}
		colon, ok := left.Y.(*ast.BasicLit)
		return ok && strings.HasSuffix(colon.Value, `:"`) && isPort(n.Y)
	}
	return false
}

// isPort reports whether an expression is a number converted to text, or has a name like a port.
func isPort(n ast.Expr) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		name, ok := n.Fun.(*ast.SelectorExpr)
		return ok && (name.Sel.Name == "Itoa" || name.Sel.Name == "FormatInt" || name.Sel.Name == "Sprint")
	case *ast.Ident:
		return strings.Contains(strings.ToLower(n.Name), "port")
	case *ast.SelectorExpr:
		return strings.Contains(strings.ToLower(n.Sel.Name), "port")
	}
	return false
}
