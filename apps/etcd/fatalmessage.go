package etcd

import (
	"encoding/json"
	"regexp"
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
		if strings.HasPrefix(line, "panic: ") {
			return truncated(line)
		}
		if entry := fatalLogLine(line); entry.Msg != "" {
			said = entry.String()
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

// logLine is a line of etcd's log.
type logLine struct{ Level, Msg, Error, Stacktrace string }

func (l logLine) String() string {
	if l.Error == "" {
		return l.Msg
	}
	return l.Msg + ": " + l.Error
}

// fatalLogLine parses a fatal line of etcd's log. Any other line is empty.
func fatalLogLine(line string) logLine {
	var entry logLine
	if json.Unmarshal([]byte(line), &entry) != nil || entry.Level != "fatal" && entry.Level != "panic" {
		return logLine{}
	}
	return entry
}

var (
	// frame is a line of a panic's stack: a function with its arguments, which are numbers.
	frame = regexp.MustCompile(`^(created by )?[\w.\-/~]+(\.\(\*?\w+(\[\.\.\.\])?\)|\w)[\w.\[\]]*\([0-9a-fx{},? .…]*\)?$`)
	// critical is a fatal line of releases before 3.4.
	critical = regexp.MustCompile(`^\d{4}-\d\d-\d\d [\d:.]+ C \| `)
	// errorAtCut is the error in a line whose beginning is cut off. Only lines with a stack have
	// the level of an error, and quotes within a field are escaped.
	errorAtCut = regexp.MustCompile(`,("error":"(?:[^"\\]|\\.)*"),"stacktrace":"`)
)

// fatalLines returns those parts of etcd's last output that no client can influence: fatal lines,
// panics and their stacks. Other lines contain the keys of clients, e.g. of a slow request.
func fatalLines(lastWords string) string {
	var all []string
	for i, line := range strings.Split(lastWords, "\n") {
		line = strings.TrimRight(line, "\r")
		entry := fatalLogLine(line)
		switch {
		case entry.Msg != "":
			all = append(all, entry.Msg, `"error":"`+entry.Error+`"`, entry.Stacktrace)
		case strings.HasPrefix(line, "panic: "), critical.MatchString(line), frame.MatchString(line):
			all = append(all, line)
		case i == 0:
			if found := errorAtCut.FindStringSubmatch(line); found != nil {
				all = append(all, found[1])
			}
		}
	}
	return strings.Join(all, "\n")
}

func truncated(s string) string {
	if len(s) > maxFatalMessage {
		return strings.ToValidUTF8(s[:maxFatalMessage], "") + "…"
	}
	return strings.TrimSuffix(s, ".")
}
