"""Frequent words of the languages that share a script with others, for `languages`.

Function words, most of them closed-class, chosen so that related languages differ.
"""

# ruff: noqa: RUF001 - other scripts are the point

WORDS: dict[str, dict[str, str]] = {
    "LATIN": {
        "en": (
            "the of and to a in is that it for was on are with as be this at by have you not "
            "from or but we my your i an will can if they their which has were he she what "
            "there our more when would do all one about who no so up out some like me him her "
            "its been had them then than just into only other could these how also very any "
            "because most should may such where after before his us over am did get make know "
            "see new good time here need let i'm it's don't"
        ),
        "de": (
            "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als "
            "auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie "
            "einem über einen so zum war haben nur oder aber vor zur bis mehr durch man sein "
            "wurde ich wir ihr mich mir dein deine mein meine kann wenn hier diese dieser"
        ),
        "fr": (
            "le la les de des et un une en du que est pour qui dans par plus pas au sur se ne "
            "ce il elle sont avec son ses aux ou mais comme nous vous leur était cette été "
            "tout fait être je mon ma mes votre vos très bien ces c'est j'ai qu'il n'est d'un "
            "d'une l'on"
        ),
        "es": (
            "el la los las de que y en un una por con para del se no lo al como más su sus es "
            "pero este esta entre cuando muy sin sobre también hasta hay donde quien desde "
            "todo nos durante uno ni contra ese eso mi yo tu él ella son está fue ser tiene "
            "porque gracias usted puede"
        ),
        "pt": (
            "o a os as de que e do da em um uma para com não por mais dos das como mas foi ao "
            "ele ela seu sua ou ser quando muito nos já está eu também só pelo pela até isso "
            "entre era depois sem mesmo aos ter seus quem nas me esse eles você essa são é "
            "produto meu minha nosso às"
        ),
        "it": (
            "il lo la i gli le di che e un una in per con non del della dei delle è sono si "
            "da al alla come più ma anche nel nella se ci questo questa mi suo sua o ed "
            "essere ha ho hanno molto loro quando dal sul tutto noi voi io tu lui lei perché "
            "così cosa ogni dopo fare"
        ),
        "nl": (
            "de het een en van in is dat op te zijn met voor niet aan er om ook als dan maar "
            "bij uit nog naar wordt door over ze zich hij je ik wij we heeft had was kan deze "
            "dit meer of geen"
        ),
        "fi": (
            "ja on ei että se oli hän mutta ovat kun niin myös kuin joka tai sen olla vain "
            "jos nyt mitä minä sinä me te he ole olen hänen minun sitä jotka voi sekä koska "
            "tämä tämän siitä mukaan kanssa joten olisi hyvä sinun ne siinä"
        ),
        "vi": (
            "và của là có cho không được trong các những một với người này đã để khi từ đến "
            "như tôi bạn cũng thì ra sẽ nhiều về phải làm đó trên sau theo rất nhưng vào hơn "
            "nếu lại bị chúng ta ở nó anh em chị"
        ),
        "id": (
            "yang dan di dengan untuk tidak ini itu dari dalam akan pada juga ke karena "
            "tersebut bisa ada mereka lebih kata telah saya kami kita dapat oleh atau sudah "
            "seperti sebagai adalah bahwa anda saat hanya namun bukan barang banget aku kamu "
            "apa jadi kalau secara beberapa antara sangat masih harus produk warna"
        ),
        "ms": (
            "yang dan di dengan untuk tidak ini itu dari dalam akan pada juga ke kerana "
            "tersebut boleh ada mereka lebih kata telah saya kami kita dapat oleh atau sudah "
            "seperti sebagai adalah bahawa anda ketika hanya tetapi bukan barangan awak apa "
            "jadi jika antara sangat masih perlu produk warna ialah daripada kepada beliau "
            "wang"
        ),
        "sw": (
            "na ya wa kwa ni katika za la kuwa hii cha kama yake pia au lakini hiyo ambayo "
            "watu huu sana mimi wewe yeye sisi kila tu baada kutoka huo hili kwamba yangu "
            "yako wetu si ili zaidi mtu hapa bila vya ina alikuwa bado wote moja"
        ),
        "tl": (
            "ang ng sa na mga at ay si ko mo niya kung para hindi ito siya ka ako namin natin "
            "sila may kay po rin din lang pero dahil isang nang kayo nila ni upang kanyang "
            "iyon"
        ),
        "tr": (
            "ve bir bu da de için ile çok daha gibi ne o ben sen en var olarak olan kadar "
            "sonra ama mi değil her şey ya ki biz siz onu bana"
        ),
        "sv": (
            "och att det i en på är som för av med den till inte har de ett om var jag men så "
            "vi han från du kan när nu hon eller man mig dig ska"
        ),
        "pl": (
            "i w na z do się nie to że jest o jak ale po co tak za od dla już przez czy tylko "
            "są ma być może był jego bardzo ja ty my ich"
        ),
    },
    "DEVANAGARI": {
        "hi": (
            "है हैं के का की में और से को पर नहीं यह कि एक लिए था हो करने साथ भी ने या जो वह "
            "तो अपने हम आप मैं इस कर रहा होता थे किया ही"
        ),
        "mr": (
            "आहे आहेत आणि च्या मध्ये हे ही हा तो ती ते नाही एक होते करण्यासाठी मी आपण तुम्ही "
            "आम्ही केले साठी असे पण होता या व त्या काही झाली त्यांच्या"
        ),
        "ne": (
            "छ छन् र को का मा लाई हो पनि यो त्यो भने गर्न गर्ने छैन हुन्छ म तपाईं हामी थियो "
            "लागि गरेको तर हुन् एक भएको गर्छ एउटा यस"
        ),
    },
    "ARABIC": {
        "ar": (
            "في من على إلى أن هذا هذه التي الذي كان لا ما هو هي مع عن لم قد كل بعد أو ثم كما "
            "أنا نحن إن ذلك بين يكون و"
        ),
        "fa": (
            "در از به که این را با است برای آن یک خود تا بر هم نیز می ها شده شود باید من شما "
            "ما او هستند بود کرد اما یا و"
        ),
        "ur": (
            "کے کی میں ہے اور سے کا کو ہیں نے پر اس یہ ایک کہ بھی نہیں لیے تھا وہ ہم آپ کر "
            "گیا تو ہو جو یا اپنے رہا ساتھ"
        ),
    },
    "CYRILLIC": {
        "ru": (
            "и в не на что с по это как он я из к но у за от так для вы же мы бы все его она "
            "был они или если только мой ваш есть когда меня очень была чтобы при"
        ),
        "bg": (
            "и на да се не в за от с е по ще че са като ли това който но има със те той го ми "
            "ни много или съм сме вие аз ние до как при може тази беше една"
        ),
        "uk": (
            "і в на не що з у та як до це за він я але для від є ви ми так його вона були чи "
            "або якщо тільки мій ваш коли дуже при бути й"
        ),
    },
}
