package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

const (
	// minInterval is the minimum time between two redraws, because changes come in bursts.
	minInterval = 100 * time.Millisecond
	// ageInterval is how often ages on a terminal are redrawn.
	ageInterval = 10 * time.Second
)

// line is one line of the watched output.
type line struct {
	// key identifies the subject of the line.
	key string
	// lead is the part of the tree before the text. A change of lead alone is not printed.
	lead, text string
	// quiet suppresses the message when the line disappears.
	quiet bool
}

// follow redraws the objects of the sources after each change, until the context ends. It
// uses watches.
func (s *session) follow(ctx context.Context, client dynamic.Interface, sources []source, draw func(catch) []line, on *paper) error {
	changed := make(chan struct{}, 1)
	feeds := s.feeds(ctx, client, sources, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	for _, f := range feeds {
		if !cache.WaitForCacheSync(ctx.Done(), f.HasSynced) {
			return nil
		}
	}
	tick := time.NewTicker(ageInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		on.show(draw(holdings(feeds)))
		sleep(ctx, minInterval)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-tick.C:
		}
	}
	return nil
}

// sleep waits, or returns when the context ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// feeds watches the sources until the context ends.
func (s *session) feeds(ctx context.Context, client dynamic.Interface, sources []source, changed func()) []cache.SharedIndexInformer {
	var complaint sync.Once
	var feeds []cache.SharedIndexInformer
	for _, from := range sources {
		informer := dynamicinformer.NewFilteredDynamicInformer(client, from.kind, from.namespace, 0, cache.Indexers{}, from.narrow).Informer()
		_ = informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
			complaint.Do(func() {
				_, _ = fmt.Fprintf(s.ErrOut, "the watch of %s was interrupted and is retried: %v\n", from.kind.Resource, err)
			})
		})
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed() },
			UpdateFunc: func(any, any) { changed() },
			DeleteFunc: func(any) { changed() },
		})
		go informer.RunWithContext(ctx)
		feeds = append(feeds, informer)
	}
	return feeds
}

// holdings returns the objects of all feeds, sorted by namespace and name.
func holdings(feeds []cache.SharedIndexInformer) catch {
	all := make(catch, len(feeds))
	for i, f := range feeds {
		for _, item := range f.GetStore().List() {
			if u, ok := item.(*unstructured.Unstructured); ok {
				all[i] = append(all[i], u)
			}
		}
		slices.SortFunc(all[i], byName)
	}
	return all
}

func byName(a, b *unstructured.Unstructured) int {
	return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
}

// paper prints the lines. On a terminal it replaces them; elsewhere it prints only new and
// changed lines, and the deletions.
type paper struct {
	*session

	replaces bool
	rows     int
	last     map[string]line
}

func (p *paper) show(lines []line) {
	if !p.replaces {
		p.log(lines)
		return
	}
	width, height, err := p.screen.size()
	if err != nil || width <= 0 || height <= 1 {
		width, height = 80, 24
	}
	var b strings.Builder
	if p.rows > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", p.rows)
	}
	p.rows = min(len(lines), height-1)
	for i, l := range lines[:p.rows] {
		if i == height-2 && len(lines) > p.rows {
			l.lead, l.text = "", fmt.Sprintf("… and %d more lines", len(lines)-i)
		}
		b.WriteString(cut(l.lead+l.text, width) + "\n")
	}
	_, _ = io.WriteString(p.Out, b.String())
}

func (p *paper) log(lines []line) {
	now := map[string]line{}
	for _, l := range lines {
		now[l.key] = l
		if was, known := p.last[l.key]; !known || was.text != l.text {
			p.say("%s%s", l.lead, l.text)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.last)) {
		if _, still := now[key]; !still && !p.last[key].quiet {
			p.say("%s was deleted", key)
		}
	}
	p.last = now
}

// cut truncates the line to the width; color codes do not count.
func cut(text string, width int) string {
	var b strings.Builder
	escaped := false
	for _, r := range text {
		switch {
		case r == '\x1b':
			escaped = true
		case escaped:
			escaped = r != 'm'
		case width == 0:
			continue
		default:
			width--
		}
		b.WriteRune(r)
	}
	return b.String()
}
