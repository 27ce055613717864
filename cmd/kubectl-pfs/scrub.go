package main

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// leftOut replaces a value that must not be in a bundle.
const leftOut = "(left out)"

// shortestSecret is the length from which a value of a Secret is searched for. Shorter ones, such as "yes", are parts of ordinary words.
const shortestSecret = 6

// mask replaces the values of Secrets in texts.
type mask struct{ replacer *strings.Replacer }

// maskOf makes a mask of all values of the Secrets, in each form in which a program may print them. Names that a bundle needs are kept.
func maskOf(secrets []corev1.Secret, names ...string) mask {
	values := map[string]bool{}
	for i := range secrets {
		for key, value := range secrets[i].Data {
			if secrets[i].Type == corev1.SecretTypeServiceAccountToken && key != corev1.ServiceAccountTokenKey {
				continue // the certificate and the namespace of the cluster are public
			}
			addForms(values, string(value))
		}
	}
	for _, name := range names {
		delete(values, name)
	}
	all := make([]string, 0, len(values))
	for value := range values {
		all = append(all, value)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	pairs := make([]string, 0, 2*len(all))
	for _, value := range all {
		pairs = append(pairs, value, leftOut)
	}
	return mask{strings.NewReplacer(pairs...)}
}

// addForms adds a value as it is, encoded, and in parts: lines, the value in a line "name=value", and the texts of JSON.
func addForms(values map[string]bool, value string) {
	for _, part := range append(partsOf(value), value, strings.TrimSpace(value)) {
		if len(part) < shortestSecret {
			continue
		}
		quoted, err := json.Marshal(part)
		if err != nil {
			quoted = nil
		}
		for _, form := range []string{
			part, strings.Trim(string(quoted), `"`), url.QueryEscape(part), url.PathEscape(part), hex.EncodeToString([]byte(part)),
			base64.RawStdEncoding.EncodeToString([]byte(part)), base64.RawURLEncoding.EncodeToString([]byte(part)),
		} {
			if len(form) >= shortestSecret {
				values[form] = true
			}
		}
	}
}

// partsOf returns the parts of a value that are secret by themselves.
func partsOf(value string) []string {
	var parts []string
	var document any
	if json.Unmarshal([]byte(value), &document) == nil {
		texts(document, &parts)
		return parts
	}
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "-----") { // the first and last line of a PEM file
			continue
		}
		parts = append(parts, line)
		if at := strings.IndexAny(line, "=:"); at >= 0 {
			parts = append(parts, strings.Trim(line[at+1:], ` "'`))
		}
	}
	return parts
}

// texts collects all strings of a JSON document, without the names of fields.
func texts(document any, into *[]string) {
	switch is := document.(type) {
	case string:
		*into = append(*into, is)
	case []any:
		for _, one := range is {
			texts(one, into)
		}
	case map[string]any:
		for _, one := range is {
			texts(one, into)
		}
	}
}

// text is a text without the values of Secrets.
func (m mask) text(s string) string { return m.replacer.Replace(s) }

// object returns an object as JSON without the parts that must not be in a bundle. These are managedFields, foreign annotations, such as
// kubectl's copy of the whole object, values of environment variables, and values of Secrets.
func (m mask) object(value any) any {
	switch is := value.(type) {
	case string:
		return m.text(is)
	case []any:
		for i := range is {
			is[i] = m.object(is[i])
		}
	case map[string]any:
		out := make(map[string]any, len(is))
		for key, one := range is {
			switch key {
			case "managedFields":
				continue
			case "annotations":
				one = ownAnnotations(one)
			case "env":
				one = withoutValues(one)
			}
			out[m.text(key)] = m.object(one)
		}
		return out
	}
	return value
}

// ownAnnotations returns the annotations of this project. Foreign annotations may contain anything.
func ownAnnotations(value any) any {
	all, is := value.(map[string]any)
	if !is {
		return value
	}
	for key := range all {
		prefix, _, _ := strings.Cut(key, "/")
		if prefix != "parallelfs.dev" && !strings.HasSuffix(prefix, ".parallelfs.dev") {
			delete(all, key)
		}
	}
	return all
}

// withoutValues returns environment variables with their names only.
func withoutValues(value any) any {
	switch is := value.(type) {
	case []any:
		for _, one := range is {
			if variable, ok := one.(map[string]any); ok {
				if _, has := variable["value"]; has {
					variable["value"] = leftOut
				}
			}
		}
	case map[string]any:
		for key := range is {
			is[key] = leftOut
		}
	}
	return value
}
