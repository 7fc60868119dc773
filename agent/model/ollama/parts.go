package ollama

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// takeParts takes texts and images out of the parts of a chat completions
// message. Images have to stand in the message: the server fetches none.
func (m *message) takeParts(parts json.RawMessage) error {
	var list []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(parts, &list); err != nil {
		return fmt.Errorf("reading its parts: %w", err)
	}
	m.Content = ""
	for _, p := range list {
		switch p.Type {
		case "text":
			m.Content += p.Text
		case "image_url":
			_, image, inline := strings.Cut(p.ImageURL.URL, ";base64,")
			if !inline || !strings.HasPrefix(p.ImageURL.URL, "data:") {
				return errors.New("an image is given by its address, which ollama does not fetch: give it as a data: URL")
			}
			m.Images = append(m.Images, image)
		default:
			return fmt.Errorf("ollama takes no part of type %q", p.Type)
		}
	}
	return nil
}
