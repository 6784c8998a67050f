package schema

import (
	_ "embed"
	"iter"
	"strings"
)

// sourceKind is a kind of source of visitors.
type sourceKind string

// The kinds of sources.
const (
	searchSource   sourceKind = "Search"
	socialSource   sourceKind = "Social"
	shoppingSource sourceKind = "Shopping"
	videoSource    sourceKind = "Video"
	emailSource    sourceKind = "Email"
)

// sources are the known sources by kind: values of utm_source, domains, and Android app names. A name followed by .* means that site under any
// country's domain, and the bare name.
var sources = map[sourceKind]string{
	searchSource: `google.* bing.* yahoo.* yandex.* duckduckgo.* baidu.* ecosia.* qwant.* startpage.* ask.* aol.* naver.* seznam.* sogou.*
		360.cn so.com sm.cn daum daum.net coccoc coccoc.com kagi kagi.com search.brave.com brave swisscows.com mojeek mojeek.com
		searx lycos lycos.com excite excite.com dogpile.com webcrawler.com info.com metager.org metager.de gibiru.com presearch
		presearch.com presearch.org you.com andisearch.com perplexity perplexity.ai www.perplexity.ai chatgpt chatgpt.com openai
		chat.openai.com gemini.google.com bard.google.com copilot copilot.microsoft.com claude.ai phind.com rambler.ru
		go.mail.ru search.naver.com goo.ne.jp biglobe.ne.jp auone.jp babylon.com msn.com
		com.google.android.googlequicksearchbox com.google.android.apps.searchlite com.duckduckgo.mobile.android com.microsoft.bing
		com.yahoo.mobile.client.android.search ru.yandex.searchplugin com.baidu.searchbox`,
	socialSource: `facebook facebook.com m.facebook.com l.facebook.com lm.facebook.com fb fb.com fb.me instagram instagram.com l.instagram.com
		ig twitter twitter.com t.co x.com linkedin linkedin.com lnkd.in reddit reddit.com old.reddit.com out.reddit.com
		pinterest.* pin.it tiktok tiktok.com snapchat snapchat.com threads threads.net threads.com l.threads.net bluesky bsky bsky.app
		mastodon mastodon.social fosstodon.org hachyderm.io whatsapp whatsapp.com wa.me telegram telegram.me telegram.org t.me web.telegram.org discord discord.com
		discord.gg discordapp.com slack slack.com quora quora.com tumblr tumblr.com medium medium.com substack substack.com
		hackernews hacker_news news.ycombinator.com ycombinator.com lobste.rs producthunt producthunt.com vk vk.com ok.ru weibo
		weibo.com t.cn wechat weixin.qq.com qq.com qzone.qq.com douban.com zhihu.com xiaohongshu.com line.me kakao.com nextdoor nextdoor.com flickr
		flickr.com meetup meetup.com stackoverflow.com stackexchange.com serverfault.com superuser.com askubuntu.com github github.com
		dev.to hashnode.com indiehackers indiehackers.com goodreads goodreads.com deviantart.com behance.net dribbble.com artstation.com
		blogger blogger.com blogspot.* wordpress wordpress.com livejournal.com messenger messenger.com yammer yammer.com xing xing.com
		viadeo.com glassdoor.com tripadvisor.* yelp.* disqus.com buffer buffer.com hootsuite hootsuite.com bit.ly
		ow.ly social 4chan.org 9gag.com slashdot.org digg digg.com mix.com flipboard flipboard.com
		com.facebook.katana com.facebook.lite com.facebook.orca com.instagram.android com.instagram.barcelona com.twitter.android
		com.linkedin.android com.reddit.frontpage com.pinterest com.zhiliaoapp.musically com.snapchat.android
		com.whatsapp org.telegram.messenger com.discord com.slack com.vkontakte.android xyz.blueskyweb.app
		org.joinmastodon.android com.tumblr com.quora.android com.nextdoor com.stackexchange.marvin io.syncapps.lemmy_sync`,
	shoppingSource: `amazon.* ebay.* walmart.* etsy etsy.com alibaba alibaba.com aliexpress.* temu temu.com shein.* shopify shopify.com
		shop.app mercadolibre.* mercadolivre.* rakuten.com flipkart flipkart.com allegro.* otto.de zalando.* target.com bestbuy.com
		costco.com wayfair.com homedepot.com lowes.com ikea ikea.com newegg.com wish.com taobao.com tmall.com jd.com 1688.com
		shopee.* lazada.* tokopedia.com coupang.com bol.com cdiscount.com fnac.com kaufland.de idealo.* pricerunner.* pricegrabber.com
		shopping.google.com google-shopping shopzilla.com nextag.com groupon.* backmarket.com asos.com ozon.ru wildberries.ru
		com.amazon.mshop.android.shopping com.ebay.mobile com.etsy.android com.alibaba.intl.android.apps.poseidon com.alibaba.aliexpresshd
		com.walmart.android com.shopify.arrive com.contextlogic.wish com.einnovation.temu com.zzkko com.mercadolibre`,
	videoSource: `youtube youtube.com m.youtube.com youtu.be youtube-nocookie.com vimeo vimeo.com dailymotion dailymotion.com twitch twitch.tv
		netflix netflix.com hulu hulu.com disneyplus disneyplus.com wistia wistia.com loom loom.com rumble.com odysee.com bilibili.com b23.tv
		 youku.com iqiyi.com v.qq.com utreon.com veoh.com bitchute.com kick.com ted.com crackle crackle.com
		com.google.android.youtube com.vimeo.android.videoapp tv.twitch.android.app com.dailymotion.dailymotion com.netflix.mediaclient`,
	emailSource: `email e-mail e_mail newsletter gmail gmail.com mail.google.com outlook outlook.com outlook.live.com outlook.office.com
		outlook.office365.com hotmail.com mail.yahoo.com mail.yahoo.co.jp mail.aol.com mail.ru e.mail.ru mail.zoho.com
		mail.proton.me protonmail.com mailchimp mailchi.mp klaviyo sendgrid mailgun customer.io hubspot hs_email substackmail mail.qq.com
		mail.163.com webmail fastmail.com superhuman.com
		com.google.android.gm com.microsoft.office.outlook com.yahoo.mobile.client.android.mail ch.protonmail.android
		com.fsck.k9 com.samsung.android.email.provider ru.mail.mailapp com.superhuman.mobile`,
}

// anyCountry marks the name of a site with domains in many countries.
const anyCountry = ".*"

// media are the known values of utm_medium, with the channel types that they mean for paid and for other visits.
var media = []struct{ paid, organic, names string }{
	{"", "Affiliate", "affiliate,affiliates,partner,partners,partnership,partnerships"},
	{"", "Audio", "audio,podcast"},
	{"", "Email", "email,e-mail,e_mail,e mail,newsletter"},
	{"", "Push", "push,notification,mobile"},
	{"", "Referral", "referral,app,link"},
	{"", "SMS", "sms"},
	{"Display", "Display", "display,banner,expandable,interstitial,cpm"},
	{"Paid Social", "Organic Social", "social,sm,social media,social-media,social_media,social network,social-network,social_network"},
	{"Paid Video", "Organic Video", "video"},
}

// ChannelDictionary is the data of a lookup function: parallel lists of names and their meanings.
type ChannelDictionary struct{ Names, Meanings []any }

// The dictionaries. Sources maps a name to a sourceKind; the others map to channel types.
var (
	Sources      = sourceDictionary()
	PaidMedia    = mediaDictionary(true)
	OrganicMedia = mediaDictionary(false)
	PaidKinds    = kindDictionary(true)
	OrganicKinds = kindDictionary(false)
)

// moreSources are more sources: see the file.
//
//go:embed sources.txt
var moreSources string

func sourceDictionary() ChannelDictionary {
	var d ChannelDictionary
	for line := range strings.Lines(moreSources) {
		kind, names, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if strings.HasPrefix(line, "#") || !ok {
			continue
		}
		for name := range strings.SplitSeq(names, ", ") {
			d.add(name, kind)
		}
	}
	for _, kind := range []sourceKind{searchSource, socialSource, shoppingSource, videoSource, emailSource} {
		for name := range strings.FieldsSeq(sources[kind]) {
			if bare, every := strings.CutSuffix(name, anyCountry); every {
				d.add(bare, string(kind))
			}
			d.add(name, string(kind))
		}
	}
	return d
}

func mediaDictionary(paid bool) ChannelDictionary {
	var d ChannelDictionary
	for _, m := range media {
		meaning := m.organic
		if paid {
			meaning = m.paid
		}
		if meaning == "" {
			continue
		}
		for name := range strings.SplitSeq(m.names, ",") {
			d.add(name, meaning)
		}
	}
	return d
}

// kindDictionary maps a kind of source to a channel type. There is no paid mail.
func kindDictionary(paid bool) ChannelDictionary {
	var d ChannelDictionary
	prefix := "Organic "
	if paid {
		prefix = "Paid "
	}
	for _, kind := range []sourceKind{searchSource, socialSource, shoppingSource, videoSource} {
		d.add(string(kind), prefix+string(kind))
	}
	if !paid {
		d.add(string(emailSource), string(emailSource))
	}
	return d
}

func (d *ChannelDictionary) add(name, meaning string) {
	d.Names, d.Meanings = append(d.Names, name), append(d.Meanings, meaning)
}

// Each yields the entries of the dictionary.
func (d ChannelDictionary) Each() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := range d.Names {
			if !yield(d.Names[i].(string), d.Meanings[i].(string)) {
				return
			}
		}
	}
}
