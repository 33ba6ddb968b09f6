package etcd

import (
	"encoding/json"
	"strings"
)

// maxFatalMessage limits the length of a message in the status.
const maxFatalMessage = 300

// FatalMessage returns the line that explains why etcd terminated: the panic, or the last fatal
// line of its log. The line contains nothing that differs between two identical failures.
func FatalMessage(lastWords string) string {
	said := ""
	for line := range strings.Lines(lastWords) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "panic: "):
			return truncated(line)
		case strings.HasPrefix(line, "{"):
			if words := fatalLogLine(line); words != "" {
				said = words
			}
		}
	}
	if said == "" && strings.Contains(lastWords, noSpaceLeft) {
		said = noSpaceLeft // a stack trace may leave no complete line
	}
	if said == "" && cannotRead(lastWords) {
		said = "panic: unmarshal should never fail"
	}
	return truncated(said)
}

// fatalLogLine returns the message of a fatal log line.
func fatalLogLine(line string) string {
	var entry struct{ Level, Msg, Error string }
	if json.Unmarshal([]byte(line), &entry) != nil || entry.Level != "fatal" && entry.Level != "panic" {
		return ""
	}
	if entry.Error == "" {
		return entry.Msg
	}
	return entry.Msg + ": " + entry.Error
}

func truncated(s string) string {
	if len(s) > maxFatalMessage {
		return strings.ToValidUTF8(s[:maxFatalMessage], "") + "…"
	}
	return strings.TrimSuffix(s, ".")
}
