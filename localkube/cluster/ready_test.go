package cluster

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers every name with 10.0.0.1, but for the first questions, which get lost.
func nameServer(t *testing.T, lost int) string {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	go func() {
		packet := make([]byte, 512)
		for n := 0; ; n++ {
			size, from, err := socket.ReadFrom(packet)
			if err != nil {
				return
			}
			if n >= lost {
				_, _ = socket.WriteTo(answer(t, packet[:size]), from)
			}
		}
	}()
	return socket.LocalAddr().String()
}

func answer(t *testing.T, question []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		t.Error(err)
		return nil
	}
	asked := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	if asked.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: asked.Name, Type: asked.Type, Class: asked.Class, TTL: 5},
			Body:   &dnsmessage.AResource{A: [4]byte{10, 0, 0, 1}},
		}}
	}
	packed, err := m.Pack()
	if err != nil {
		t.Error(err)
	}
	return packed
}

func listed(servers ...string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) { return servers, nil }
}

func TestALostQuestionIsAskedAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := askAll(ctx, listed(nameServer(t, 2))); err != nil {
		t.Error(err)
	}
}

// TestAServerThatMovedIsFound: the machine died, and the API still names the address that the server had before.
func TestAServerThatMovedIsFound(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	before, now, lists := nameServer(t, 1000), nameServer(t, 0), 0
	err := askAll(ctx, func(context.Context) ([]string, error) {
		lists++
		if lists == 1 {
			return []string{before}, nil
		}
		return []string{now}, nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestANameServerThatNeverAnswersIsNamed(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	server := nameServer(t, 1000)
	if err := askAll(ctx, listed(server)); err == nil || !strings.Contains(err.Error(), server) {
		t.Errorf("got %v, want an error with %s", err, server)
	}
}
