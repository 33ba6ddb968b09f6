package certs

import (
	"sync"

	"github.com/go-logr/logr"
)

// herald says each thing once. The webhook is a comfort: that it does not work is
// worth one line in the log, not one for each attempt.
type herald struct {
	log logr.Logger

	mu   sync.Mutex
	said map[string]string
}

func newHerald(log logr.Logger) *herald {
	return &herald{log: log, said: map[string]string{}}
}

// tell says what hinders the matter, unless it was the last that was said of it,
// and says when nothing hinders it any more.
func (h *herald) tell(matter string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	words := ""
	if err != nil {
		words = err.Error()
	}
	if h.said[matter] == words {
		return
	}
	h.said[matter] = words
	if words == "" {
		h.log.Info("in order again", "matter", matter)
		return
	}
	h.log.Info("users may get no advice at kubectl apply; all else works", "matter", matter, "because", words)
}
