package option

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"strings"
)

// AuthError is the lack of a secret, which the programs report differently from a wrong configuration.
type AuthError struct{ Text string }

// Error returns the text.
func (e *AuthError) Error() string { return e.Text }

const noAuthFile = "No connAuthFile configured. Using BeeGFS without connection authentication is considered insecure and is not " +
	"recommended. If you really want or need to run BeeGFS without connection authentication, please set connDisableAuthentication to true."

// Secret returns the hash of the file in connAuthFile, or 0 if authentication is disabled. Two files are the same secret if their first
// 1024 bytes are equal, including line ends.
func Secret(major int, values Values) (uint64, error) {
	file, disabled := values["connAuthFile"], values.Bool("connDisableAuthentication", false)
	if disabled && (file == "" || major >= 8) {
		return 0, nil
	}
	if file == "" {
		return 0, &AuthError{Text: noAuthFile}
	}
	content, err := os.ReadFile(file)
	if err != nil {
		text := "Unable to open auth file: " + file + " (SysErr: " + SysErr(err) + ")"
		if major >= 8 {
			return 0, &AuthError{Text: text}
		}
		return 0, &Error{Text: text}
	}
	if len(content) < 4 {
		return 0, invalid("Auth file is empty: %s", file)
	}
	return Hash(content), nil
}

// Hash returns the number by which two programs verify that they have the same secret.
func Hash(content []byte) uint64 {
	sum := sha256.Sum256(content[:min(len(content), 1024)])
	return binary.LittleEndian.Uint64(sum[:8])
}

// SysErr returns the system's text of an error as the C library writes it: "No such file or directory".
func SysErr(err error) string {
	text := err.Error()
	text = text[strings.LastIndex(text, ": ")+1:]
	text = strings.TrimSpace(text)
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// Interfaces returns the filters of connInterfacesFile or connInterfacesList; none means every interface.
func Interfaces(values Values) ([]string, error) {
	file, list := values["connInterfacesFile"], values["connInterfacesList"]
	if file != "" && list != "" {
		return nil, invalid("connInterfacesFile and connInterfacesList cannot be used together")
	}
	lines := strings.Split(list, ",")
	if file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, invalid("Failed to open file: %s", file)
		}
		lines = strings.Split(string(content), "\n")
	}
	var filters []string
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			filters = append(filters, line)
		}
	}
	return filters, nil
}

// Ports returns the TCP and the UDP port of a role (Mgmtd, Meta, Storage). Since version 8 they are equal.
func Ports(major int, values Values, role string, otherwise int) (tcp, udp int, err error) {
	shift := values.Int("connPortShift", 0)
	one, both := values["conn"+role+"Port"], []string{values["conn"+role+"PortTCP"], values["conn"+role+"PortUDP"]}
	if major >= 8 && one != "" && (both[0] != "" || both[1] != "") {
		return 0, 0, invalid("Deprecated config arguments 'conn%[1]sPortUDP/TCP' set along with the new 'conn%[1]sPort' setting. "+
			"Please use only the new setting.", role)
	}
	if major >= 8 && both[0] != "" && both[1] != "" && both[0] != both[1] {
		return 0, 0, invalid("Deprecated config arguments 'conn%[1]sPortUDP' and 'conn%[1]sPortTCP' set to different values, which is no "+
			"longer allowed. Please use the new 'conn%[1]sPort' setting instead.", role)
	}
	if major >= 8 {
		port := values.Int("conn"+role+"Port", values.Int("conn"+role+"PortTCP", values.Int("conn"+role+"PortUDP", otherwise)))
		return port + shift, port + shift, nil
	}
	return values.Int("conn"+role+"PortTCP", otherwise) + shift, values.Int("conn"+role+"PortUDP", otherwise) + shift, nil
}

// Choosers lists the target choosers that a metadata server accepts (meta/app/config/Config.cpp, 7.4.6 and 8.3.1).
func Choosers() []string {
	return []string{"randomized", "roundrobin", "randomrobin", "randominternode"}
}
