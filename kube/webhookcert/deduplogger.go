package webhookcert

import (
	"sync"

	"github.com/go-logr/logr"
)

// topic is what can fail, and what users lose while it does.
type topic struct{ name, loss string }

const (
	noAdvice     = "users may get no advice at kubectl apply; everything else works"
	noPreview    = "users get no preview from kubectl governor plan; everything else works"
	noConversion = "users can read and write the kind in its stored version only; everything else works"
	twoInstalls  = "two operators act on the same objects, unless each watches other namespaces; users may get no advice and no preview"
	noWebhook    = "users may get no advice at kubectl apply, and may use kinds in their stored version only; everything else works"
)

// certificateTopic is the Secret and the certificate that is served.
var certificateTopic = topic{"certificate", noWebhook}

// dedupLogger logs each failure once, not once for each attempt. The operator works without
// its webhooks, so one line is enough.
type dedupLogger struct {
	log logr.Logger

	mu   sync.Mutex
	last map[string]string // message by the topic's name
}

func newDedupLogger(log logr.Logger) *dedupLogger {
	return &dedupLogger{log: log, last: map[string]string{}}
}

// report logs the error of a topic unless it is the last one that was logged. It also logs
// that the topic has recovered.
func (l *dedupLogger) report(t topic, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	message := ""
	if err != nil {
		message = err.Error()
	}
	if l.last[t.name] == message {
		return
	}
	l.last[t.name] = message
	if message == "" {
		l.log.Info("recovered", "topic", t.name)
		return
	}
	l.log.Info(t.loss, "topic", t.name, "reason", message)
}
