package v1alpha1

import "encoding/json"

// Percent is a decimal number of percent, such as 3 or "0.5".
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:MaxLength=8
// +kubebuilder:validation:Pattern=`^(0|0\.[0-9]{1,3}|[1-9][0-9]?(\.[0-9]{1,3})?)$`
type Percent string

// UnmarshalJSON reads a number or a text.
func (p *Percent) UnmarshalJSON(raw []byte) error {
	text, err := textOf(raw)
	*p = Percent(text)
	return err
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
