package beegfs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const (
	common8 = " connAuthFile={DIR}/auth connInterfacesFile={DIR}/interfaces sysTargetOfflineTimeoutSecs=30 storeAllowFirstRunInit=false " +
		"connMgmtdPort={PORT+8} sysMgmtdHost={ADDRESS}"
	cli = "beegfs --mgmtd-addr={ADDRESS}:{PORT+10} --auth-file={DIR}/auth --tls-disable "
)

// cluster8 is a running filesystem of 8 with one metadata server and the targets 101 and 102 of one storage server.
func cluster8(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, "8.3.1")
	g := NewWithT(t)
	c.write("beegfs-mgmtd.toml", strings.ReplaceAll(strings.ReplaceAll(c.fill(`# made for a test
db-file = "{DIR}/store/mgmtd.sqlite"
auth-file = "{DIR}/auth"
beemsg-port = {PORT+8}
grpc-port = {PORT+10}
tls-disable = true
log-target = "stderr"
node-offline-timeout = "30s"
license-cert-file = "{DIR}/license.pem"
interfaces = ["{CARD} * 4"]
[cap-pool-meta-limits]
LIMITS
[cap-pool-storage-limits]
LIMITS
`), "LIMITS", "inodes-low = 2\ninodes-emergency = 1\nspace-low = \"2KiB\"\nspace-emergency = 1"), "KiB", "kiB"))
	said, code := c.run("beegfs-mgmtd --init --config-file {DIR}/beegfs-mgmtd.toml")
	g.Expect(code).To(Equal(0), said)
	g.Expect(said).To(HavePrefix("Created new database version "))
	c.start("mgmtd", "beegfs-mgmtd --config-file {DIR}/beegfs-mgmtd.toml")
	c.prepareMeta("meta-1", 1)
	c.prepareTarget("target-101", 101, 1)
	c.prepareTarget("target-102", 102, 1)
	c.start("meta", "beegfs-meta"+common8+" storeMetaDirectory={DIR}/meta-1 connMetaPort={PORT+16}")
	c.start("storage", storage8("target-101", "target-102"))
	c.online8(3)
	return c
}

// online8 waits until this number of targets is online.
func (c *cluster) online8(count int) {
	c.t.Helper()
	NewWithT(c.t).Eventually(func() int {
		said, _ := c.run(cli + "target list --state --output ndjson --columns reachability")
		return strings.Count(said, `{"reachability":"Online"}`)
	}).WithTimeout(long).Should(Equal(count))
}

func storage8(targets ...string) string {
	for i, target := range targets {
		targets[i] = "{DIR}/" + target
	}
	return "beegfs-storage" + common8 + " storeStorageDirectory=" + strings.Join(targets, ",") + " connStoragePort={PORT+32}"
}

func TestTheStoreOfEightIsMadeOnceAndNeverOverwritten(t *testing.T) {
	c := newCluster(t, "8.3.1")
	g := NewWithT(t)
	said, code := c.run("beegfs-mgmtd --db-file {DIR}/store/mgmtd.sqlite --auth-disable --tls-disable")
	g.Expect(code).To(Equal(1))
	g.Expect(said).To(ContainSubstring("No accessible database file found at"))
	_, code = c.run("beegfs-mgmtd --init --db-file {DIR}/store/mgmtd.sqlite")
	g.Expect(code).To(Equal(0))
	before, err := os.ReadFile(c.path("store", "mgmtd.sqlite"))
	g.Expect(err).NotTo(HaveOccurred())
	said, code = c.run("beegfs-mgmtd --init --db-file {DIR}/store/mgmtd.sqlite")
	g.Expect(code).To(Equal(1))
	g.Expect(said).To(ContainSubstring("already exists"))
	g.Expect(os.ReadFile(c.path("store", "mgmtd.sqlite"))).To(Equal(before))
	c.write("foreign", "something else")
	said, code = c.run("beegfs-mgmtd --db-file {DIR}/foreign --auth-disable --tls-disable")
	g.Expect(code).To(Equal(1))
	g.Expect(said).To(ContainSubstring("not a database"))
}

func TestTheServiceOfEightRefusesWhatItDoesNotKnow(t *testing.T) {
	c := newCluster(t, "8.3.1")
	_, _ = c.run("beegfs-mgmtd --init --db-file {DIR}/mgmtd.sqlite")
	for name, config := range map[string]string{
		"a key that is none": "no-such-key = 1\n", "a text for a number": "beemsg-port = \"8008\"\n", "a number for a text": "db-file = 1\n",
		"a word that is not allowed": "log-level = \"loud\"\n", "a duration that is none": "node-offline-timeout = \"soon\"\n",
		"a section that is none": "[no-such-section]\na = 1\n", "half of a section": "[cap-pool-meta-limits]\nspace-low = 1\n",
		"a key of a section that is none": "[cap-pool-meta-limits]\nspace = 1\n", "no value": "db-file\n", "a key twice": "tls-disable = true\ntls-disable = true\n",
		"limits in the wrong order":   "[cap-pool-meta-limits]\nspace-low = 1\nspace-emergency = 2\ninodes-low = 2\ninodes-emergency = 1\n",
		"a list with what is no text": "interfaces = [1]\n", "a switch of the command line": "init = true\n",
	} {
		t.Run(name, func(t *testing.T) {
			c.write("wrong.toml", config)
			said, code := c.run("beegfs-mgmtd --config-file {DIR}/wrong.toml --db-file {DIR}/mgmtd.sqlite --auth-disable --tls-disable")
			NewWithT(t).Expect(code).To(Equal(1), said)
		})
	}
	for name, line := range map[string]string{
		"an argument that is none": "--no-such-argument", "a word": "word", "a port that is none": "--grpc-port=x", "no value": "--db-file",
	} {
		t.Run(name, func(t *testing.T) {
			said, code := c.run("beegfs-mgmtd " + line)
			NewWithT(t).Expect(code).To(Equal(2), said)
		})
	}
}

func TestServersOfEightRefuseOptionsOfSevenAndKnowTheirOwn(t *testing.T) {
	c := newCluster(t, "8.3.1")
	c.prepareMeta("meta-1", 1)
	g := NewWithT(t)
	for line, text := range map[string]string{
		"beegfs-meta connHelperdPortTCP=1 connDisableAuthentication=true":                                             "'connHelperdPortTCP' is invalid",
		"beegfs-meta storeMetaDirectory={DIR}/meta-1 connMetaPort=1 connMetaPortTCP=1 connDisableAuthentication=1":    "only the new setting",
		"beegfs-meta storeMetaDirectory={DIR}/meta-1 connMetaPortTCP=1 connMetaPortUDP=2 connDisableAuthentication=1": "different values",
	} {
		said, code := c.run(line)
		g.Expect(code).To(Equal(1), line)
		g.Expect(said).To(ContainSubstring(text), line)
	}
}

func TestPoolsAndMirrorsOfEightNeedALicense(t *testing.T) {
	c := cluster8(t)
	g := NewWithT(t)
	for _, line := range []string{
		"pool create ssd --num-id=2", "pool assign s:1 --targets=s:101", "pool delete s:1 --yes",
		"mirror create one --node-type=storage --primary=s:101 --secondary=s:102", "mirror init --yes",
	} {
		said, code := c.run(cli + line)
		g.Expect(code).To(Equal(1), line)
		g.Expect(said).To(ContainSubstring("Error: rpc error: code = Unauthenticated desc = "), line)
	}
	said, code := c.run(cli + "license --output json")
	g.Expect(code).To(Equal(1), said)

	// The license is read at the start of the service.
	c.daemons["mgmtd"].end(t)
	c.write("license.pem", "-----BEGIN CERTIFICATE-----\nQkVFR0ZTLURPVUJMRS1MSUNFTlNF\n-----END CERTIFICATE-----\n")
	c.start("mgmtd-licensed", "beegfs-mgmtd --config-file {DIR}/beegfs-mgmtd.toml")
	g.Eventually(func() string { said, _ := c.run(cli + "pool list"); return said }).WithTimeout(long).Should(ContainSubstring("storage_pool_default"))
	for _, line := range []string{
		"pool create ssd --num-id=2 --targets=s:101", "pool assign s:1 --targets=s:101", "pool delete ssd --yes", "license --output json",
		"mirror create one --node-type=storage --primary=s:101 --secondary=s:102", "mirror list",
	} {
		said, code := c.run(cli + line)
		g.Expect(code).To(Equal(0), "%s: %s", line, said)
	}
}

func TestTheToolOfEightPrintsAsTheRealOne(t *testing.T) {
	c := cluster8(t)
	g := NewWithT(t)
	said, code := c.run(cli + "target list --state --capacity --raw --output ndjson")
	g.Expect(code).To(Equal(0))
	var row map[string]any
	g.Expect(json.NewDecoder(strings.NewReader(said)).Decode(&row)).To(Succeed(), said)
	g.Expect(row).To(And(HaveKeyWithValue("id", map[string]any{"num_id": 1.0, "node_type": 2.0}), HaveKeyWithValue("node", "m:1"),
		HaveKeyWithValue("storage_pool", "(n/a)"), HaveKeyWithValue("consistency", "Good"), HaveKeyWithValue("cap_pool", "Normal"),
		HaveKeyWithValue("type", 2.0), HaveKeyWithValue("space", MatchRegexp(`^\d+$`))))

	said, _ = c.run(cli + "node list --with-nics --output ndjson --columns id,alias,nics")
	g.Expect(said).To(ContainSubstring(fmt.Sprintf(`{"alias":"management","id":{"num_id":1,"node_type":4},"nics":"ethernet:%s (%s:%s,%s)"}`,
		c.card, c.address, c.fill("{PORT+8}"), c.fill("{PORT+10}"))))
	g.Expect(said).To(ContainSubstring(fmt.Sprintf(`"nics":"ethernet:%s (%s:%s)"}`, c.card, c.address, c.fill("{PORT+32}"))))

	said, _ = c.run(cli + "pool list")
	g.Expect(said).To(HavePrefix("ID   ALIAS                 TARGETS      MIRRORS  \ns:1  storage_pool_default  s:101,s:102           \n\n"))
	said, code = c.run(cli + "mirror list")
	g.Expect(code).To(Equal(1))
	g.Expect(said).To(HavePrefix("Error: no mirrors configured"))
	_, code = c.run(cli + "pool set-alias s:1 first")
	g.Expect(code).To(Equal(0))
	said, code = c.run(cli + "target list --no-such-flag")
	g.Expect(code).To(Equal(1))
	g.Expect(said).To(HavePrefix("Error: unknown flag: --no-such-flag\nUsage: list --help"))
	said, code = c.run(strings.Replace(cli, "/auth ", "/auth-other ", 1) + "target list")
	g.Expect(code).To(Equal(1))
	g.Expect(said).To(ContainSubstring("code = Unauthenticated"))
}

func TestDirectoriesOfEightAreMadeWithoutAMount(t *testing.T) {
	c := cluster8(t)
	g := NewWithT(t)
	unmounted := cli + "--mount=none "
	for line, expected := range map[string]int{"entry info /": 0, "entry info /none": 1, "entry set /none --num-targets=1": 1} {
		said, code := c.run(unmounted + line)
		g.Expect(code).To(Equal(expected), "%s: %s", line, said)
	}
	_, code := c.run(unmounted + "entry create directory /a")
	g.Expect(code).To(Equal(0))
	said, code := c.run(unmounted + "entry create directory /a")
	g.Expect(code).To(Equal(1))
	g.Expect(said).To(ContainSubstring("Entry exists already"))
	said, code = c.run(unmounted + "entry set /a --pool=s:1 --chunk-size=1048576 --num-targets=2 --pattern=raid0")
	g.Expect(code).To(Equal(0), said)
	g.Expect(said).To(ContainSubstring("Summary: processed 1 entries"))
	said, _ = c.run(unmounted + "entry info /a --output ndjson")
	g.Expect(said).To(ContainSubstring(`"storage_pool":"storage_pool_default (1)","storage_targets":"(directory)","stripe_pattern":"RAID0 (2x1Mi)"`))
	for _, line := range []string{
		"entry set /a --pattern=mirrored", "entry set /a --chunk-size=3Mi", "entry set /a --chunk-size=1Ki", "entry set /a --num-targets=0",
		"entry set /a --pool=s:9", "entry set /a --pattern=buddymirror",
	} {
		said, code := c.run(unmounted + line)
		g.Expect(code).To(Equal(1), "%s: %s", line, said)
	}
	_, code = c.run(cli + "entry info /")
	g.Expect(code).To(Equal(1), "a path of a machine without BeeGFS")
	_, code = c.run(cli + "--mount={DIR} entry migrate {DIR} --recurse --yes --from-targets=s:101 --pool=s:1")
	g.Expect(code).To(Equal(1))
}

func TestPoolsAndNodesInUseAreNotDeletedInEight(t *testing.T) {
	c := cluster8(t)
	g := NewWithT(t)
	said, code := c.run(cli + "node delete m:1 --yes")
	g.Expect(code).To(Equal(1))
	g.Expect(said).To(ContainSubstring("has the root inode"))
	said, code = c.run(cli + "node delete s:1 --yes")
	g.Expect(code).To(Equal(1))
	g.Expect(said).To(ContainSubstring("still has targets assigned"))
	said, code = c.run(cli + "target delete s:102")
	g.Expect(code).To(Equal(0))
	g.Expect(said).To(ContainSubstring("Target can be deleted: target_storage_102[s:102, uid:"))
	said, _ = c.run(cli + "target list --columns id")
	g.Expect(said).To(ContainSubstring("s:102"))
	_, code = c.run(cli + "target delete s:102 --yes")
	g.Expect(code).To(Equal(0))
	said, _ = c.run(cli + "target list --columns id")
	g.Expect(said).NotTo(ContainSubstring("s:102"))
}

func TestADirectoryThatWasMadeAgainIsRefusedByItsTokenInEight(t *testing.T) {
	c := cluster8(t)
	g := NewWithT(t)
	g.Expect(c.daemons["storage"].end(t)).To(Equal(0))
	g.Expect(os.RemoveAll(c.path("target-101"))).To(Succeed())
	c.prepareTarget("target-101", 101, 1)
	again := c.start("storage-again", storage8("target-101", "target-102"))
	g.Eventually(again.says).WithTimeout(long).Should(ContainSubstring("does not match the stored token"))
	g.Expect(again.done).NotTo(BeClosed())
}

func TestEachProgramIsOfItsOwnVersion(t *testing.T) {
	g := NewWithT(t)
	g.Expect(filepath.Base(newCluster(t, "7.4.6").command(t.Context(), "beegfs").Path)).To(Equal("beegfs"))
	for version, program := range map[string]string{"8.3.1": "beegfs-ctl", "7.4.6": "beegfs"} {
		c := newCluster(t, version)
		c.real = false
		said, code := c.run(program)
		g.Expect(code).To(Equal(127), said)
	}
}

// certified makes a self-signed certificate of a management service for an address, and returns the names of its files.
func (c *cluster) certified(name, address string) string {
	c.t.Helper()
	g := NewWithT(c.t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		Subject: pkix.Name{CommonName: c.address}, IPAddresses: []net.IP{net.ParseIP(address)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	g.Expect(err).NotTo(HaveOccurred())
	pkcs, err := x509.MarshalPKCS8PrivateKey(key)
	g.Expect(err).NotTo(HaveOccurred())
	c.write(name+".crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	c.write(name+".key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs})))
	return name
}

func TestTheToolOfEightSendsTheSecretToNoServiceThatItCannotVerify(t *testing.T) {
	c := newCluster(t, "8.3.1")
	g := NewWithT(t)
	_, code := c.run("beegfs-mgmtd --init --db-file {DIR}/mgmtd.sqlite")
	g.Expect(code).To(Equal(0))
	own, elsewhere := c.certified("own", c.address), c.certified("elsewhere", "192.0.2.1")
	c.certified("other", c.address)
	serve := func(certificate string) *daemon {
		return c.start(certificate, "beegfs-mgmtd --db-file {DIR}/mgmtd.sqlite --auth-file {DIR}/auth --beemsg-port {PORT+8} --grpc-port {PORT+10} "+
			"--log-target stderr --tls-cert-file {DIR}/"+certificate+".crt --tls-key-file {DIR}/"+certificate+".key")
	}
	ask := func(options string) (string, int) {
		return c.run("beegfs --mgmtd-addr={ADDRESS}:{PORT+10} --mount=none --auth-file={DIR}/auth-other " + options + " node list")
	}
	d := serve(own)
	g.Eventually(func() string { said, _ := ask("--tls-cert-file={DIR}/own.crt"); return said }).WithTimeout(long).
		Should(ContainSubstring("Invalid auth secret"), "it is the right service, and only now is the secret sent: here a wrong one")
	refused := func(options, why string) {
		t.Helper()
		before, err := os.ReadFile(d.log)
		g.Expect(err).NotTo(HaveOccurred())
		said, code := ask(options)
		g.Expect(code).To(Equal(1))
		g.Expect(said).To(ContainSubstring(why))
		g.Expect(os.ReadFile(d.log)).To(Equal(before), "the service was sent no secret that it could refuse")
	}
	const handshake = "code = Unavailable desc = connection error: desc = \"transport: authentication handshake failed: tls: failed to verify certificate: x509: "
	refused("--tls-cert-file={DIR}/other.crt", handshake+"certificate signed by unknown authority")
	refused("--tls-cert-file=", handshake+"certificate signed by unknown authority")
	said, _ := ask("--tls-cert-file= --tls-disable-verification")
	g.Expect(said).To(ContainSubstring("Invalid auth secret"), "without verification, it goes to whoever answers")
	d.end(t)

	d = serve(elsewhere)
	g.Eventually(func() string { said, _ := ask("--tls-cert-file={DIR}/elsewhere.crt"); return said }).WithTimeout(long).
		Should(ContainSubstring(handshake+"certificate is valid for 192.0.2.1, not "), "the common name counts for nothing")
}
