package v1alpha1

import (
	"encoding/json"
	"strconv"
)

// Percent is a decimal number of percent, such as 3 or "0.5".
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:MaxLength=8
// +kubebuilder:validation:Pattern=`^(0|0\.[0-9]{1,3}|[1-9][0-9]?(\.[0-9]{1,3})?)$`
type Percent string

// MarshalJSON writes a whole number without quotes.
func (p Percent) MarshalJSON() ([]byte, error) { return numberOrText(string(p)) }

// UnmarshalJSON reads a number or a text.
func (p *Percent) UnmarshalJSON(raw []byte) error {
	text, err := textOf(raw)
	*p = Percent(text)
	return err
}

// numberOrText is the JSON of a text: a number when the text is a whole number as JSON writes it, and else a string.
func numberOrText(text string) ([]byte, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
		return []byte(text), nil
	}
	return json.Marshal(text)
}

// textOf is the text of a JSON string, or of any other JSON value as it is written.
func textOf(raw []byte) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return string(raw), nil
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err
}
