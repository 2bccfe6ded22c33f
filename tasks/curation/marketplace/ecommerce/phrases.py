"""What the e-commerce tasks say, in the languages of `marketplace.words`.

Braces are filled by `cases`. The order of `reasons`, `outcomes` and `grades` has the same meaning
in every language.
"""

# ruff: noqa: RUF001 - signs that people type

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrases:
    """Questions and terms of one language."""

    guide: str
    after_sales: str
    reasons: tuple[str, str, str]
    """Faulty, of the wrong size, no longer wanted."""
    outcomes: tuple[str, str, str]
    """Refund, exchange, rejection."""
    recommendation: str
    rewriting: str
    request: str
    """Wordy wish of a customer, which `rewriting` shortens."""
    attributes: str
    brand: str
    fits: str
    """Names another brand in a title."""
    relevance: str
    grades: tuple[str, str, str]
    """Exact, substitute, irrelevant."""
    address: str
    address_line: str
    cities: tuple[str, str, str, str]
    streets: tuple[str, str, str, str]
    selling_points: str
    matching: str
    same: str
    different: str
    price: str


PHRASES = {
    "en": Phrases(
        guide="A customer wants a {item} for at most {limit}. Which brand do you suggest? "
        "Answer with the brand alone.",
        after_sales="Rules of the shop: {faulty} within 30 days: {refund}. {wrong} within 7 days: "
        "{exchange}. Otherwise: {reject}.\n{item}, delivered {days} days ago, {reason}. What "
        "does the shop do? Answer with one of: {options}.",
        reasons=("faulty", "wrong size", "no longer wanted"),
        outcomes=("refund", "exchange", "rejection"),
        recommendation="A customer bought {bought}. Recommend the one product of the same "
        "category: {options}. Answer with the product alone.",
        rewriting="Rewrite this request as a short search query: brand, then product with its "
        "colour, nothing else.\n{request}",
        request="Hello, I need a present for my sister. She would like something from {brand}, "
        "I think: a {item} would be perfect. Thank you!",
        attributes="Extract these attributes of the product as one JSON object: {keys}.\n{title}",
        brand="Which brand made this product? Answer with the brand alone.\n{title}",
        fits="also fits {other}",
        relevance="Query: {query}\nProduct: {title}\nHow relevant is the product to the query? "
        "{exact}: product and colour as asked; {substitute}: another colour; {irrelevant}: "
        "another product. Answer with one of these words.",
        grades=("exact", "substitute", "irrelevant"),
        address="Extract the address as one JSON object with the keys name, street, number, city "
        "and postcode.\n{line}",
        address_line="{name}, {number} {street}, {city} {postcode}",
        cities=("Springfield", "Riverton", "Fairview", "Oakdale"),
        streets=("Station Road", "Garden Street", "Market Street", "River Lane"),
        selling_points="Write three selling points of this product, each on a line that begins "
        "with an asterisk (*): its brand, its colour and its price.\n{item}, {brand}, {price}",
        matching="Are these two offers the same product? Answer {same} or {different}.\n"
        "A: {left}\nB: {right}",
        same="same",
        different="different",
        price="{name} buys {count} of these at {price} each and pays with {paid}: {item}. How "
        "much change is due? Answer with the number.",
    ),
    "zh-TW": Phrases(
        guide="顧客想買{item}，預算最多 {limit}。你推薦哪個品牌？只回答品牌名稱。",
        after_sales="商店規則：30 天內{faulty}：{refund}。7 天內{wrong}：{exchange}。其他情況："
        "{reject}。\n{item}，{days} 天前送達，{reason}。"
        "商店應如何處理？只回答其中一項：{options}。",
        reasons=("商品故障", "尺寸不合", "不想要了"),
        outcomes=("退款", "換貨", "拒絕"),
        recommendation="顧客買過{bought}。請推薦唯一同類的商品：{options}。只回答商品名稱。",
        rewriting="把這段需求改寫成簡短的搜尋詞：先寫品牌，再寫帶顏色的商品，不要寫其他內容。\n{request}",
        request="你好，我想買禮物送給妹妹。我想她會喜歡 {brand} 的東西，{item}就很合適。謝謝！",
        attributes="把商品的這些屬性寫成一個 JSON 物件：{keys}。\n{title}",
        brand="這個商品是哪個品牌生產的？只回答品牌名稱。\n{title}",
        fits="也適用 {other}",
        relevance="查詢：{query}\n商品：{title}\n商品與查詢有多相關？{exact}：商品和顏色都符合；"
        "{substitute}：顏色不同；{irrelevant}：商品不同。只回答其中一個詞。",
        grades=("符合", "替代", "無關"),
        address="把地址寫成一個 JSON 物件，鍵為 name、street、number、city 和 postcode。\n{line}",
        address_line="{postcode} {city}{street} {number} 號 {name} 收",
        cities=("臺北市", "臺中市", "高雄市", "臺南市"),
        streets=("車站路", "花園街", "市場街", "河濱路"),
        selling_points="為這個商品寫三個賣點，每行以星號（*）開頭：品牌、顏色和價格。\n"
        "{item}，{brand}，{price}",
        matching="這兩個商品是同一款嗎？回答{same}或{different}。\nA：{left}\nB：{right}",
        same="相同",
        different="相異",
        price="{name} 買了 {count} 個{item}，每個 {price} 元，付了 {paid} 元。應找回多少元？"
        "只回答數字。",
    ),
    "id": Phrases(
        guide="Pelanggan ingin {item} dengan harga paling mahal {limit}. Merek mana yang Anda "
        "sarankan? Jawab hanya dengan mereknya.",
        after_sales="Aturan toko: {faulty} dalam 30 hari: {refund}. {wrong} dalam 7 hari: "
        "{exchange}. Selain itu: {reject}.\n{item}, diterima {days} hari lalu, {reason}. Apa "
        "tindakan toko? Jawab dengan salah satu: {options}.",
        reasons=("rusak", "salah ukuran", "berubah pikiran"),
        outcomes=("pengembalian dana", "penukaran", "penolakan"),
        recommendation="Pelanggan membeli {bought}. Sarankan satu-satunya produk dengan kategori "
        "yang sama: {options}. Jawab hanya dengan produknya.",
        rewriting="Tulis ulang permintaan ini sebagai kueri pencarian singkat: merek, lalu produk "
        "dengan warnanya, tanpa yang lain.\n{request}",
        request="Halo, saya perlu hadiah untuk adik saya. Sepertinya dia suka sesuatu dari "
        "{brand}: {item} pasti cocok. Terima kasih!",
        attributes="Ambil atribut produk ini sebagai satu objek JSON: {keys}.\n{title}",
        brand="Merek mana yang membuat produk ini? Jawab hanya dengan mereknya.\n{title}",
        fits="cocok juga untuk {other}",
        relevance="Kueri: {query}\nProduk: {title}\nSeberapa relevan produk dengan kueri? "
        "{exact}: produk dan warna sesuai; {substitute}: warna lain; {irrelevant}: produk lain. "
        "Jawab dengan salah satu kata itu.",
        grades=("tepat", "pengganti", "melenceng"),
        address="Ambil alamat sebagai satu objek JSON dengan kunci name, street, number, city dan "
        "postcode.\n{line}",
        address_line="{name}, {street} No. {number}, {city} {postcode}",
        cities=("Bandung", "Surabaya", "Medan", "Semarang"),
        streets=("Jalan Stasiun", "Jalan Kebun", "Jalan Pasar", "Jalan Sungai"),
        selling_points="Tulis tiga keunggulan produk ini, masing-masing di baris yang diawali "
        "tanda bintang (*): merek, warna, dan harganya.\n{item}, {brand}, {price}",
        matching="Apakah kedua penawaran ini produk yang sama? Jawab {same} atau {different}.\n"
        "A: {left}\nB: {right}",
        same="sama",
        different="berbeda",
        price="{name} membeli {count} buah {item} seharga {price} per buah dan membayar dengan "
        "{paid}. Berapa kembaliannya? Jawab dengan angkanya.",
    ),
    "ms": Phrases(
        guide="Pelanggan mahukan {item} dengan harga tidak melebihi {limit}. Jenama manakah yang "
        "anda cadangkan? Jawab dengan jenama sahaja.",
        after_sales="Peraturan kedai: {faulty} dalam masa 30 hari: {refund}. {wrong} dalam masa 7 "
        "hari: {exchange}. Selain itu: {reject}.\n{item}, diterima {days} hari lalu, {reason}. "
        "Apakah tindakan kedai? Jawab dengan salah satu: {options}.",
        reasons=("rosak", "salah saiz", "berubah fikiran"),
        outcomes=("bayaran balik", "pertukaran", "penolakan"),
        recommendation="Pelanggan telah membeli {bought}. Cadangkan satu-satunya produk daripada "
        "kategori yang sama: {options}. Jawab dengan produk sahaja.",
        rewriting="Tulis semula permintaan ini sebagai carian ringkas: jenama, kemudian produk "
        "dengan warnanya, tanpa yang lain.\n{request}",
        request="Helo, saya perlukan hadiah untuk adik saya. Rasanya dia suka sesuatu daripada "
        "{brand}: {item} memang sesuai. Terima kasih!",
        attributes="Ekstrak atribut produk ini sebagai satu objek JSON: {keys}.\n{title}",
        brand="Jenama manakah yang membuat produk ini? Jawab dengan jenama sahaja.\n{title}",
        fits="sesuai juga untuk {other}",
        relevance="Carian: {query}\nProduk: {title}\nSejauh manakah produk ini relevan? "
        "{exact}: produk dan warna menepati; {substitute}: warna lain; {irrelevant}: produk "
        "lain. Jawab dengan salah satu perkataan itu.",
        grades=("tepat", "pengganti", "tersasar"),
        address="Ekstrak alamat sebagai satu objek JSON dengan kunci name, street, number, city "
        "dan postcode.\n{line}",
        address_line="{name}, {number}, {street}, {postcode} {city}",
        cities=("Ipoh", "Melaka", "Kuantan", "Seremban"),
        streets=("Jalan Stesen", "Jalan Taman", "Jalan Pasar", "Jalan Sungai"),
        selling_points="Tulis tiga kelebihan produk ini, setiap satu pada baris yang bermula "
        "dengan asterisk (*): jenama, warna dan harganya.\n{item}, {brand}, {price}",
        matching="Adakah kedua-dua tawaran ini produk yang sama? Jawab {same} atau {different}.\n"
        "A: {left}\nB: {right}",
        same="sama",
        different="berbeza",
        price="{name} membeli {count} unit {item} pada harga {price} seunit dan membayar dengan "
        "{paid}. Berapakah bakinya? Jawab dengan nombor.",
    ),
    "pt": Phrases(
        guide="Um cliente procura {item} por no máximo {limit}. Que marca você sugere? Responda "
        "só com a marca.",
        after_sales="Regras da loja: {faulty} em até 30 dias: {refund}. {wrong} em até 7 dias: "
        "{exchange}. Nos outros casos: {reject}.\n{item}, entregue há {days} dias, {reason}. O "
        "que a loja faz? Responda com um destes: {options}.",
        reasons=("com defeito", "tamanho errado", "desistência"),
        outcomes=("reembolso", "troca", "recusa"),
        recommendation="Um cliente comprou {bought}. Recomende o único produto da mesma "
        "categoria: {options}. Responda só com o produto.",
        rewriting="Reescreva este pedido como uma busca curta: marca, depois o produto com a cor, "
        "e nada mais.\n{request}",
        request="Olá, preciso de um presente para a minha irmã. Acho que ela gostaria de algo da "
        "{brand}: {item} seria perfeito. Obrigado!",
        attributes="Extraia estes atributos do produto como um objeto JSON: {keys}.\n{title}",
        brand="Que marca fabricou este produto? Responda só com a marca.\n{title}",
        fits="serve também em {other}",
        relevance="Busca: {query}\nProduto: {title}\nQuão relevante é o produto? {exact}: produto "
        "e cor pedidos; {substitute}: outra cor; {irrelevant}: outro produto. Responda com uma "
        "dessas palavras.",
        grades=("exato", "substituto", "irrelevante"),
        address="Extraia o endereço como um objeto JSON com as chaves name, street, number, city e "
        "postcode.\n{line}",
        address_line="{name}, {street}, {number}, {city}, {postcode}",
        cities=("Campinas", "Curitiba", "Recife", "Salvador"),
        streets=("Rua da Estação", "Rua do Jardim", "Rua do Mercado", "Rua do Rio"),
        selling_points="Escreva três pontos de venda deste produto, cada um em uma linha que "
        "começa com um asterisco (*): a marca, a cor e o preço.\n{item}, {brand}, {price}",
        matching="Estas duas ofertas são do mesmo produto? Responda {same} ou {different}.\n"
        "A: {left}\nB: {right}",
        same="igual",
        different="diferente",
        price="{name} compra {count} unidades de {item} a {price} cada e paga com {paid}. Quanto é "
        "o troco? Responda com o número.",
    ),
    "th": Phrases(
        guide="ลูกค้าต้องการ{item} ราคาไม่เกิน {limit} คุณแนะนำแบรนด์ใด ตอบเฉพาะชื่อแบรนด์",
        after_sales="กฎของร้าน: {faulty}ภายใน 30 วัน: {refund} {wrong}ภายใน 7 วัน: {exchange} "
        "กรณีอื่น: {reject}\n{item} ได้รับเมื่อ {days} วันก่อน {reason} ร้านควรทำอย่างไร "
        "ตอบข้อใดข้อหนึ่ง: {options}",
        reasons=("สินค้าชำรุด", "ผิดขนาด", "เปลี่ยนใจ"),
        outcomes=("คืนเงิน", "เปลี่ยนสินค้า", "ปฏิเสธ"),
        recommendation="ลูกค้าซื้อ {bought} จงแนะนำสินค้าเพียงชิ้นเดียวที่อยู่ในหมวดเดียวกัน: {options} "
        "ตอบเฉพาะชื่อสินค้า",
        rewriting="เขียนคำขอนี้ใหม่เป็นคำค้นสั้น ๆ: แบรนด์ แล้วตามด้วยสินค้าพร้อมสี ไม่ต้องมีอย่างอื่น\n{request}",
        request="สวัสดีค่ะ อยากหาของขวัญให้น้องสาว คิดว่าน้องชอบของจาก {brand} ถ้าเป็น {item} ก็คงดีมาก ขอบคุณค่ะ",
        attributes="ดึงคุณสมบัติเหล่านี้ของสินค้าเป็นออบเจกต์ JSON เดียว: {keys}\n{title}",
        brand="แบรนด์ใดผลิตสินค้านี้ ตอบเฉพาะชื่อแบรนด์\n{title}",
        fits="ใช้กับ {other} ได้ด้วย",
        relevance="คำค้น: {query}\nสินค้า: {title}\nสินค้าเกี่ยวข้องกับคำค้นเพียงใด "
        "{exact}: สินค้าและสีตามที่ค้น {substitute}: สีอื่น {irrelevant}: สินค้าอื่น ตอบด้วยคำใดคำหนึ่ง",
        grades=("ตรงกัน", "ทดแทน", "คนละอย่าง"),
        address="ดึงที่อยู่เป็นออบเจกต์ JSON เดียว มีคีย์ name, street, number, city และ postcode\n{line}",
        address_line="{name} {number} {street} {city} {postcode}",
        cities=("เชียงใหม่", "ขอนแก่น", "สงขลา", "ชลบุรี"),
        streets=("ถนนสถานี", "ถนนสวนดอก", "ถนนตลาด", "ถนนริมน้ำ"),
        selling_points="เขียนจุดขายสามข้อของสินค้านี้ แต่ละข้อขึ้นบรรทัดใหม่ด้วยดอกจัน (*): แบรนด์ สี และราคา\n"
        "{item}, {brand}, {price}",
        matching="ข้อเสนอทั้งสองเป็นสินค้าเดียวกันหรือไม่ ตอบ {same} หรือ {different}\nA: {left}\nB: {right}",
        same="เหมือนกัน",
        different="แตกต่างกัน",
        price="{name} ซื้อ{item} {count} ชิ้น ชิ้นละ {price} บาท และจ่าย {paid} บาท ต้องทอนเท่าไร "
        "ตอบเป็นตัวเลข",
    ),
    "vi": Phrases(
        guide="Khách muốn mua {item} với giá không quá {limit}. Bạn gợi ý thương hiệu nào? Chỉ "
        "trả lời tên thương hiệu.",
        after_sales="Quy định của cửa hàng: {faulty} trong 30 ngày: {refund}. {wrong} trong 7 "
        "ngày: {exchange}. Trường hợp khác: {reject}.\n{item}, nhận cách đây {days} ngày, "
        "{reason}. Cửa hàng làm gì? Trả lời một trong: {options}.",
        reasons=("bị lỗi", "sai kích cỡ", "đổi ý"),
        outcomes=("hoàn tiền", "đổi hàng", "từ chối"),
        recommendation="Khách đã mua {bought}. Hãy gợi ý sản phẩm duy nhất cùng danh mục: "
        "{options}. Chỉ trả lời tên sản phẩm.",
        rewriting="Viết lại yêu cầu này thành truy vấn tìm kiếm ngắn: thương hiệu, rồi sản phẩm "
        "kèm màu, không gì khác.\n{request}",
        request="Chào shop, mình cần quà cho em gái. Chắc em thích đồ của {brand}: {item} thì rất "
        "hợp. Cảm ơn shop!",
        attributes="Trích các thuộc tính này của sản phẩm thành một đối tượng JSON: {keys}.\n"
        "{title}",
        brand="Thương hiệu nào sản xuất sản phẩm này? Chỉ trả lời tên thương hiệu.\n{title}",
        fits="dùng được cho cả {other}",
        relevance="Truy vấn: {query}\nSản phẩm: {title}\nSản phẩm liên quan thế nào? {exact}: "
        "đúng sản phẩm và màu; {substitute}: màu khác; {irrelevant}: sản phẩm khác. Trả lời một "
        "trong các từ đó.",
        grades=("chính xác", "thay thế", "lạc đề"),
        address="Trích địa chỉ thành một đối tượng JSON có các khóa name, street, number, city và "
        "postcode.\n{line}",
        address_line="{name}, {number} {street}, {city} {postcode}",
        cities=("Đà Nẵng", "Hải Phòng", "Cần Thơ", "Huế"),
        streets=("đường Nhà Ga", "đường Vườn Hoa", "đường Chợ Mới", "đường Bờ Sông"),
        selling_points="Viết ba điểm nổi bật của sản phẩm này, mỗi điểm trên một dòng bắt đầu bằng "
        "dấu sao (*): thương hiệu, màu và giá.\n{item}, {brand}, {price}",
        matching="Hai chào hàng này có cùng một sản phẩm không? Trả lời {same} hoặc {different}.\n"
        "A: {left}\nB: {right}",
        same="giống nhau",
        different="khác nhau",
        price="{name} mua {count} cái {item} giá {price} mỗi cái và trả {paid}. Tiền thối lại là "
        "bao nhiêu? Trả lời bằng số.",
    ),
    "fil": Phrases(
        guide="Hanap ng customer: {item}, hindi lalampas sa {limit}. Anong brand ang imumungkahi "
        "mo? Brand lang ang isagot.",
        after_sales="Mga patakaran ng tindahan: {faulty} sa loob ng 30 araw: {refund}. {wrong} sa "
        "loob ng 7 araw: {exchange}. Sa iba pa: {reject}.\n{item}, natanggap {days} araw na ang "
        "nakalipas, {reason}. Ano ang gagawin ng tindahan? Isagot ang isa sa mga ito: {options}.",
        reasons=("may sira", "maling sukat", "nagbago ang isip"),
        outcomes=("ibalik ang bayad", "palitan", "tanggihan"),
        recommendation="Binili ng customer: {bought}. Irekomenda ang nag-iisang produktong "
        "kapareho ng kategorya: {options}. Produkto lang ang isagot.",
        rewriting="Isulat muli ang hiling na ito bilang maikling search query: brand, saka ang "
        "produkto kasama ang kulay nito, at wala nang iba.\n{request}",
        request="Hello po, kailangan ko ng regalo para sa kapatid ko. Gusto yata niya ang gawa ng "
        "{brand}: bagay sa kanya ang {item}. Salamat po!",
        attributes="Kunin ang mga katangiang ito ng produkto bilang isang JSON object: {keys}.\n"
        "{title}",
        brand="Anong brand ang gumawa ng produktong ito? Brand lang ang isagot.\n{title}",
        fits="puwede rin sa {other}",
        relevance="Query: {query}\nProdukto: {title}\nGaano kaugnay ang produkto sa query? "
        "{exact}: tugma ang produkto at kulay; {substitute}: ibang kulay; {irrelevant}: ibang "
        "produkto. Isagot ang isa sa mga salitang iyon.",
        grades=("eksakto", "pamalit", "malayo"),
        address="Kunin ang address bilang isang JSON object na may mga key na name, street, "
        "number, city at postcode.\n{line}",
        address_line="{name}, {number} {street}, {city} {postcode}",
        cities=("Quezon City", "Davao City", "Cebu City", "Baguio City"),
        streets=("Kalye Rizal", "Kalye Mabini", "Kalye Bonifacio", "Kalye Luna"),
        selling_points="Sumulat ng tatlong selling point ng produktong ito, bawat isa sa linyang "
        "nagsisimula sa asterisk (*): ang brand, kulay at presyo nito.\n{item}, {brand}, {price}",
        matching="Iisang produkto ba ang dalawang alok na ito? Isagot ang {same} o {different}.\n"
        "A: {left}\nB: {right}",
        same="pareho",
        different="magkaiba",
        price="Bumili si {name} ng {count} piraso ({item}), {price} bawat isa, at nagbayad ng "
        "{paid}. Magkano ang sukli? Isagot ang numero.",
    ),
}
"""By the tag of the language."""
