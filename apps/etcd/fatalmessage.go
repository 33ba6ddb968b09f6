package etcd

import (
	"encoding/json"
	"strings"
)

// mostWords is how much of a message a status has room for.
const mostWords = 300

// FatalMessage is the line with which etcd said why it ends: the panic, or the last line of its log
// that is fatal. It has nothing in it that differs from one end to the next.
func FatalMessage(lastWords string) string {
	said := ""
	for line := range strings.Lines(lastWords) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "panic: "):
			return shortened(line)
		case strings.HasPrefix(line, "{"):
			if words := logged(line); words != "" {
				said = words
			}
		}
	}
	if said == "" && strings.Contains(lastWords, noSpaceLeft) {
		said = noSpaceLeft // a stack may leave no whole line
	}
	if said == "" && cannotRead(lastWords) {
		said = "panic: unmarshal should never fail"
	}
	return shortened(said)
}

// logged is the message of a line of the log that is fatal.
func logged(line string) string {
	var entry struct{ Level, Msg, Error string }
	if json.Unmarshal([]byte(line), &entry) != nil || entry.Level != "fatal" && entry.Level != "panic" {
		return ""
	}
	if entry.Error == "" {
		return entry.Msg
	}
	return entry.Msg + ": " + entry.Error
}

func shortened(s string) string {
	if len(s) > mostWords {
		return strings.ToValidUTF8(s[:mostWords], "") + "…"
	}
	return strings.TrimSuffix(s, ".")
}
