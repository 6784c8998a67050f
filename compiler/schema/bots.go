package schema

import "strings"

// botCategory is a kind of machine that sends requests; kind is what it counts as.
type botCategory struct{ name, kind string }

// The categories of bots.
var (
	aiCrawler     = botCategory{"ai_crawler", "AI Agent"}
	aiSearch      = botCategory{"ai_search", "AI Agent"}
	aiAssistant   = botCategory{"ai_assistant", "AI Agent"}
	searchCrawler = botCategory{"search_crawler", "Bot"}
	seoCrawler    = botCategory{"seo_crawler", "Bot"}
	socialCrawler = botCategory{"social_crawler", "Bot"}
	monitoring    = botCategory{"monitoring", "Bot"}
	httpClient    = botCategory{"http_client", "Automation"}
	headless      = botCategory{"headless_browser", "Automation"}
	noUserAgent   = botCategory{"no_user_agent", "Automation"}
	regular       = botCategory{"regular", "Regular"}
)

// bots are the user agents of machines by category, one per line: a text contained in them, and the bot's name and operator as PostHog names them. If
// several match, the one found first in the user agent counts.
var bots = []struct {
	category botCategory
	agents   string
}{
	{aiCrawler, `
		GPTBot | GPTBot | OpenAI
		Google-CloudVertexBot | Google Cloud Vertex | Google
		Google-Extended | Google AI | Google
		GoogleOther | GoogleOther | Google
		ClaudeBot | Claude | Anthropic
		Claude-Web | Claude Web | Anthropic
		anthropic-ai | Anthropic | Anthropic
		CCBot | Common Crawl | Common Crawl
		meta-externalagent | Meta AI | Meta
		Bytespider | ByteDance | ByteDance
		TikTokSpider | TikTok AI | ByteDance
		cohere-ai | Cohere | Cohere
		Diffbot | Diffbot | Diffbot
		omgili | Webz.io | Webz.io
		Webzio-Extended | Webz.io Extended | Webz.io
		Timpibot | Timpi | Timpi
		Amazonbot | Amazon | Amazon
		PetalBot | Petal | Huawei
		Brightbot | Brightbot | Bright Data
		FirecrawlAgent | FirecrawlAgent | Firecrawl`},
	{aiSearch, `
		OAI-SearchBot | OpenAI Search | OpenAI
		Claude-SearchBot | Claude Search | Anthropic
		PerplexityBot | Perplexity | Perplexity
		Applebot-Extended | Apple AI | Apple
		Applebot/ | Applebot | Apple`},
	{aiAssistant, `
		ChatGPT-User | ChatGPT | OpenAI
		Claude-User | Claude User | Anthropic
		Perplexity-User | Perplexity User | Perplexity
		meta-externalfetcher | Meta Fetcher | Meta
		Meta-ExternalFetcher | Meta Fetcher | Meta
		DuckAssistBot | DuckDuckGo AI | DuckDuckGo
		MistralAI-User | Mistral AI | Mistral
		Manus-User | Manus | Manus
		Google-NotebookLM | NotebookLM | Google`},
	{searchCrawler, `
		Googlebot | Googlebot | Google
		AdsBot-Google | Google Ads | Google
		Google-InspectionTool | Google Inspection | Google
		Mediapartners | google-adsense-googlebot | Google
		bingbot | Bingbot | Microsoft
		Bingbot | Bingbot | Microsoft
		YandexBot | Yandex | Yandex
		Baiduspider | Baidu | Baidu
		DuckDuckBot | DuckDuckGo | DuckDuckGo
		Slurp | Yahoo | Yahoo
		Yeti/ | Naver | Naver
		YisouSpider | Yisou | Yisou
		Sogou web spider | Sogou | Sogou
		360Spider | 360 Spider | Qihoo 360
		Qwantbot | Qwant | Qwant
		YouBot | You.com | You.com
		MojeekBot | Mojeek | Mojeek
		SeznamBot | SeznamBot | Seznam
		DataForSeoBot | DataForSeo | DataForSeo
		archive.org_bot | Internet Archive | Internet Archive`},
	{seoCrawler, `
		AhrefsBot | Ahrefs | Ahrefs
		AhrefsSiteAudit | Ahrefs Site Audit | Ahrefs
		Barkrowler | Barkrowler | Babbar
		SemrushBot | Semrush | Semrush
		SiteAuditBot | Semrush Site Audit | Semrush
		SERankingBacklinksBot | SE Ranking | SE Ranking
		MJ12bot | Majestic | Majestic
		DotBot | Moz | Moz
		Lighthouse | Lighthouse | Google
		Screaming Frog SEO Spider | Screaming Frog | Screaming Frog
		PTST | WebPageTest | Catchpoint`},
	{socialCrawler, `
		FacebookBot | Facebook Bot | Meta
		facebookexternalhit | Facebook | Meta
		Twitterbot | Twitter | X
		LinkedInBot | LinkedIn | LinkedIn
		Pinterest | Pinterest | Pinterest
		Slackbot | Slack | Salesforce
		Slack-ImgProxy | Slack Image Proxy | Salesforce
		TelegramBot | Telegram | Telegram
		WhatsApp | WhatsApp | Meta
		GoogleImageProxy | Google Image Proxy | Google
		Iframely | Iframely | Iframely
		SkypeUriPreview | Skype Preview | Microsoft
		Discordbot | Discord | Discord
		redditbot | Reddit | Reddit
		BingPreview | Bing Preview | Microsoft
		Snap URL Preview Service | SnapURLPreviewBot | Snap`},
	{monitoring, `
		Pingdom | Pingdom | SolarWinds
		UptimeRobot | UptimeRobot | UptimeRobot
		Site24x7 | Site24x7 | Zoho
		StatusCake | StatusCake | StatusCake
		Datadog | Datadog | Datadog
		Checkly | Checkly | Checkly
		GTmetrix | GTmetrix | GTmetrix
		Better Uptime Bot | Better Stack | BetterStack
		Catchpoint | catchpoint | Catchpoint`},
	{httpClient, `
		curl/ | curl | curl
		Wget | Wget | GNU
		python-requests | Python Requests | Python
		aiohttp | python-aiohttp | Python
		httpx | httpx | Python
		axios | Axios | axios
		node-fetch | Node Fetch | Node.js
		Go-http-client | Go HTTP | Go
		okhttp | OkHttp | Square
		Apache-HttpClient | Apache HTTP | Apache
		libwww-perl | LWP | Perl
		Scrapy | Scrapy | Scrapy
		Google-Apps-Script | Google Apps Script | Google
		zgrab | zgrab | ZMap
		nmap | nmap | Nmap`},
	{headless, `
		HeadlessChrome | Headless Chrome | Google
		PhantomJS | PhantomJS | PhantomJS
		Puppeteer | Puppeteer | Google
		Playwright | Playwright | Microsoft
		Selenium | Selenium | Selenium`},
}

// BotList says what is known about user agents. Each list of meanings starts with the one for no match, followed by the meaning of each pattern,
// in order.
type BotList struct {
	Patterns []any
	Meanings map[BotFact][]any
}

// BotFact is something known about a user agent.
type BotFact uint8

// The facts about a user agent. The zero value is not a fact.
const (
	_ BotFact = iota
	BotTraffic
	BotCategory
	BotLikely // has no meanings of its own: any match
	BotKind   // the category; empty for anything but a bot
	BotName
	BotOperator
)

// Bots is the table of user agents.
var Bots = newBotList()

func newBotList() *BotList {
	l := &BotList{Meanings: map[BotFact][]any{}}
	l.add(regular, "", "", "")
	l.Patterns = append(l.Patterns, emptyAgent)
	l.add(noUserAgent, noUserAgent.name, "", "")
	for _, group := range bots {
		for line := range strings.Lines(group.agents) {
			parts := strings.Split(strings.TrimSpace(line), " | ")
			if len(parts) != 3 {
				continue // the line break before the first line
			}
			l.Patterns = append(l.Patterns, literalPattern.Replace(parts[0]))
			l.add(group.category, group.category.name, parts[1], parts[2])
		}
	}
	return l
}

// emptyAgent matches an empty user agent.
const emptyAgent = "^$"

// literalPattern escapes a text as a regular expression that matches it.
var literalPattern = strings.NewReplacer(".", `\.`, "+", `\+`, "(", `\(`, ")", `\)`)

func (l *BotList) add(c botCategory, kind, name, operator string) {
	for fact, meaning := range map[BotFact]any{
		BotTraffic: c.kind, BotCategory: c.name, BotKind: kind, BotName: name, BotOperator: operator,
	} {
		l.Meanings[fact] = append(l.Meanings[fact], meaning)
	}
}
