package option

import (
	"fmt"
	"slices"
	"strings"
)

// toml parses the part of TOML that a configuration of beegfs-mgmtd 8 needs: values, arrays of texts, and sections of numbers. Other syntax
// and unknown keys are refused.
func toml(text string) (Values, error) {
	table, values, section := ManagementEight(), Values{}, ""
	sections := map[string]bool{}
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(withoutRemark(line))
		if line == "" {
			continue
		}
		refuse := func(format string, arguments ...any) error {
			return invalid("Could not parse config file: TOML parse error at line %d, column 1\n  |\n%d | %s\n  |\n%s", number+1, number+1, line,
				fmt.Sprintf(format, arguments...))
		}
		if name, is := strings.CutPrefix(line, "["); is {
			name, closed := strings.CutSuffix(name, "]")
			if option, known := table[name]; !closed || !known || option.Kind != Section || sections[name] {
				return nil, refuse("unknown field `%s`", name)
			}
			section = name
			sections[name] = true
			continue
		}
		name, raw, found := strings.Cut(line, "=")
		name, raw = strings.TrimSpace(name), strings.TrimSpace(raw)
		if !found {
			return nil, refuse("expected `.`, `=`")
		}
		if err := tomlValue(table, values, section, name, raw); err != nil {
			return nil, refuse("%s", err)
		}
	}
	for section := range sections {
		for _, key := range limitKeys(section) {
			if _, given := values[section+"."+key]; !given {
				return nil, invalid("Could not parse config file: TOML parse error\nmissing field `%s` in [%s]", key, section)
			}
		}
	}
	return values, nil
}

func tomlValue(table map[string]Eight, values Values, section, name, raw string) error {
	value, quoted := unquote(raw)
	key, kind := name, Word
	if section != "" {
		key = section + "." + name
		if !slices.Contains(limitKeys(section), name) {
			return fmt.Errorf("unknown field `%s`", name)
		}
		if _, err := Units(value); err != nil {
			return err
		}
	} else {
		option, known := table[name]
		if !known || !option.File || option.Kind == Section {
			return fmt.Errorf("unknown field `%s`", name)
		}
		kind = option.Kind
	}
	if _, twice := values[key]; twice {
		return fmt.Errorf("duplicate key `%s` in document root", name)
	}
	if section == "" && kind == List {
		list, err := array(raw)
		if err != nil {
			return err
		}
		values[key] = list
		return nil
	}
	if section == "" && kind != Duration && quoted != (kind == Word) {
		return fmt.Errorf("invalid type: %s", raw)
	}
	if problem := wrong(kind, name, value); problem != "" {
		return fmt.Errorf("invalid value %s: %s", raw, problem)
	}
	values[key] = value
	return nil
}

func withoutRemark(line string) string {
	quoted := false
	for i, letter := range line {
		switch {
		case letter == '"' || letter == '\'':
			quoted = !quoted
		case letter == '#' && !quoted:
			return line[:i]
		}
	}
	return line
}

func unquote(raw string) (value string, quoted bool) {
	for _, quote := range []string{`"`, `'`} {
		if len(raw) >= 2 && strings.HasPrefix(raw, quote) && strings.HasSuffix(raw, quote) {
			return raw[1 : len(raw)-1], true
		}
	}
	return raw, false
}

func array(raw string) (string, error) {
	inner, open := strings.CutPrefix(raw, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !open || !closed {
		return "", fmt.Errorf("invalid type: %s, expected a sequence", raw)
	}
	var items []string
	for item := range strings.SplitSeq(inner, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		value, quoted := unquote(item)
		if !quoted {
			return "", fmt.Errorf("invalid type: %s, expected a string", item)
		}
		items = append(items, value)
	}
	return strings.Join(items, ","), nil
}
