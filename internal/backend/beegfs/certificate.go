package beegfs

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
)

// CertificateSecret is the user's Secret with the certificate of the management service of a BeeGFS 8. Only its gRPC uses TLS: servers and
// clients speak BeeMsg, and the tools are the only clients of the gRPC.
func (Backend) CertificateSecret(fs *v1alpha1.FileSystem) string {
	if tls := own(fs).TLS; tls != nil && cli.Is8(backend.Version(fs)) {
		return tls.Name
	}
	return ""
}

// CertifiedHost is the address of the management service if the certificate has it, else the first name of the certificate.
func (Backend) CertifiedHost(in backend.Input, c *v1alpha1.CertificateStatus) (host, lacks string) {
	node, ok := managementNode(in)
	if !ok {
		return "", ""
	}
	if host := certifiedHost(c, node.IP); host != "" {
		return host, ""
	}
	return "", fmt.Sprintf("names neither the IP address %s of node %s nor a DNS name without a wildcard (subject alternative names)",
		node.IP, node.Name)
}

// certifiedHost returns what the tools ask for at the address, empty if the certificate has nothing that they could verify. Go ignores the
// common name of a certificate (VerifyHostname of crypto/x509). A name with a wildcard is no name that could be asked for, and an alias of
// a pod takes only names as Kubernetes writes them.
func certifiedHost(c *v1alpha1.CertificateStatus, address string) string {
	if c == nil {
		return ""
	}
	ip, _ := netip.ParseAddr(address)
	first := ""
	for _, name := range c.Names {
		if known, err := netip.ParseAddr(name); err == nil {
			if known.Unmap() == ip.Unmap() {
				return address
			}
		} else if name = strings.ToLower(name); first == "" && len(validation.IsDNS1123Subdomain(name)) == 0 {
			first = name
		}
	}
	return first
}

// grpcAddress is where the tools of BeeGFS 8 ask the management service. If the certificate has nothing that proves it, they ask by the
// address, and refuse what they find there.
func grpcAddress(in backend.Input) string {
	node, _ := managementNode(in)
	fs, prefix, host := in.FileSystem, "", node.IP
	if own(fs).TLS != nil {
		prefix = cli.TLSPrefix
		if name := certifiedHost(fs.Status.Certificate, node.IP); name != "" {
			host = name
		}
	}
	return prefix + backend.Address(host, portsOf(fs).grpc())
}

// nameManagement lets the tools in a pod find the management service by the name in its certificate. That name need not be in a DNS, and no
// DNS can send the tools elsewhere.
//
// For a name, grpc-go also asks the DNS for a TXT record, and waits for the answer (lookupTXT of dns_resolver.go, 1.73). A DNS that is away
// must not hold up the tools for longer than a probe waits.
func (b *builder) nameManagement(pod *corev1.PodTemplateSpec) {
	fs := b.in.FileSystem
	host := certifiedHost(fs.Status.Certificate, b.management.IP)
	if (Backend{}).CertificateSecret(fs) == "" || host == "" || host == b.management.IP {
		return
	}
	pod.Spec.HostAliases = []corev1.HostAlias{{IP: b.management.IP, Hostnames: []string{host}}}
	pod.Spec.DNSConfig = &corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{
		{Name: "ndots", Value: new("1")}, {Name: "timeout", Value: new("1")}, {Name: "attempts", Value: new("1")},
	}}
}
