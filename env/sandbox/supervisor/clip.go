package supervisor

// clip keeps the beginning and the end of a stream. The zero value with max set
// is ready to use.
type clip struct {
	max   int
	head  []byte
	tail  []byte // a ring once it is full
	begin int    // where the ring's oldest byte is
	total int64
}

// headShare is how much of the room the beginning gets, in fifths: errors tend
// to stand at the end.
const headShare = 2

func (c *clip) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	take := min(n, c.max*headShare/5-len(c.head))
	c.head = append(c.head, p[:take]...)
	c.keepTail(p[take:])
	return n, nil
}

func (c *clip) keepTail(p []byte) {
	room := c.max - c.max*headShare/5
	p = p[max(0, len(p)-room):]
	take := min(len(p), room-len(c.tail))
	c.tail = append(c.tail, p[:take]...)
	for p = p[take:]; len(p) > 0; {
		n := copy(c.tail[c.begin:], p)
		p = p[n:]
		c.begin = (c.begin + n) % room
	}
}

// kept is what is left of the stream: omitted bytes are missing at gap.
func (c *clip) kept() (data []byte, gap int, omitted int64) {
	data = make([]byte, 0, len(c.head)+len(c.tail))
	data = append(data, c.head...)
	data = append(data, c.tail[c.begin:]...)
	data = append(data, c.tail[:c.begin]...)
	return data, len(c.head), c.total - int64(len(data))
}
